import type { LinkServerPlan } from '../../protocol/boot.ts'
import type { TakenByThread } from '../egress/event-memory.ts'
import type { ReceiptKeyParts } from '../keys/receipt-key.ts'
import type { LinkReply } from '../link-server/reply.ts'
import type { LogEvent, LogFields } from '../log.ts'
import type { ChannelEvidence } from '../proofs.ts'
import type { FactFeed } from './fact-channel.ts'
import type { Beats } from './heartbeat.ts'

/** The start parameters of a carrier. */
export interface CarrierData {
  readonly link: LinkServerPlan
  readonly key: ReceiptKeyParts
  readonly facts: FactFeed
  /** Shared by all carriers. */
  readonly eventMemory: TakenByThread
  /** The carrier's index, from 0. */
  readonly place: number
  readonly maxStreams: number
  readonly beats: Beats
}

/** A question of a carrier to the main thread. */
export type Question =
  /** A call over the link, for a route of the main thread. */
  | {
      readonly type: 'call'
      readonly method: string
      readonly target: string
      readonly body: Uint8Array
    }
  /** `ProvenProviders.reverify`; its result is among the facts before the answer arrives. */
  | { readonly type: 'reverify'; readonly provider: string; readonly stale: ChannelEvidence }

/** Messages from the carrier. */
export type FromCarrier =
  | { readonly type: 'listening'; readonly port: number }
  | { readonly type: 'asked'; readonly id: number; readonly question: Question }
  | { readonly type: 'distrust'; readonly provider: string; readonly evidence: ChannelEvidence }
  | { readonly type: 'log'; readonly event: LogEvent; readonly fields: LogFields }

/** To the carrier: the answer to a question; for a call it holds the reply. */
export interface ToCarrier {
  readonly id: number
  readonly reply: LinkReply | undefined
}
