import { createHash } from 'node:crypto'
import {
  concatBytes,
  copyBytes,
  fromHex,
  toHex,
  utf8,
  type Bytes,
} from '../../src/protocol/bytes.ts'
import { sha256Of, type SyntheticIntel } from './synthetic-intel.ts'
import { makeQuote, register, type GuestFields } from './synthetic-tdx.ts'

/** What a node of the dstack family reports about itself; tests change one thing at a time. */
export interface DstackNode {
  readonly nonce: string
  readonly tlsSpkiSha256: string
  readonly algorithm: 'ed25519' | 'ecdsa'
  readonly address: string
  readonly layout: 'tls' | 'address'
  readonly appCompose: string
  readonly events: readonly RuntimeEvent[]
  readonly guest: GuestFields
  readonly nvidiaPayload: string | undefined
  /** The fingerprint that the node states beside the quote. */
  readonly tlsFingerprint?: string
  /** A released OS, in place of one that was never released. */
  readonly os?: {
    readonly registers: Readonly<Record<'mrTd' | 'rtMr0' | 'rtMr1' | 'rtMr2', Bytes>>
    readonly events: readonly object[]
    readonly vmConfig: object
  }
}

export interface RuntimeEvent {
  readonly name: string
  readonly payload: string
  readonly type?: number
}

const RUNTIME_EVENT = 0x0800_0001

export const APP_COMPOSE = '{"manifest_version":2,"name":"chat","docker_compose_file":"x"}'
export const COMPOSE_HASH = toHex(sha256Of(utf8(APP_COMPOSE)))

/** What a guest measures between its start and the start of the workload. */
export function bootEvents(composeHash = COMPOSE_HASH): readonly RuntimeEvent[] {
  return [
    { name: 'system-preparing', payload: '' },
    { name: 'app-id', payload: 'aa'.repeat(20) },
    { name: 'compose-hash', payload: composeHash },
    { name: 'instance-id', payload: 'bb'.repeat(20) },
    { name: 'os-image-hash', payload: 'cc'.repeat(32) },
    { name: 'boot-mr-done', payload: '' },
    { name: 'system-ready', payload: '' },
  ]
}

export const MEASUREMENT = ['11', '12', '13', '14'].map((byte) => byte.repeat(48)).join('')

const UNRELEASED = {
  mrTd: register(0x11),
  rtMr0: register(0x12),
  rtMr1: register(0x13),
  rtMr2: register(0x14),
}

/** An honest node without GPUs. */
const HONEST: Omit<DstackNode, 'nonce' | 'tlsSpkiSha256'> = {
  algorithm: 'ed25519',
  address: 'ab'.repeat(32),
  layout: 'tls',
  appCompose: APP_COMPOSE,
  events: bootEvents(),
  guest: {},
  nvidiaPayload: undefined,
}

/** The answer to `/attestation/report`, with a quote of the synthetic platform, of an honest node but for `change`. */
export async function dstackReport(
  intel: SyntheticIntel,
  change: Pick<DstackNode, 'nonce' | 'tlsSpkiSha256'> & Partial<DstackNode>,
): Promise<object> {
  const node: DstackNode = { ...HONEST, ...change }
  const log = node.events.map(logged)
  const { registers } = node.os ?? { registers: UNRELEASED }
  const quote = await makeQuote(intel, {
    mrTd: registers.mrTd,
    rtMr: [registers.rtMr0, registers.rtMr1, registers.rtMr2, replay(log)],
    mrConfigId: concatBytes(Uint8Array.of(1), fromHex(COMPOSE_HASH), new Uint8Array(15)),
    reportData: reportData(node),
    ...node.guest,
  })
  return {
    model_name: 'glm',
    signing_address: node.algorithm === 'ecdsa' ? `0x${node.address}` : node.address,
    signing_algo: node.algorithm,
    request_nonce: node.nonce,
    intel_quote: toHex(quote),
    ...(node.tlsFingerprint === undefined ? {} : { tls_cert_fingerprint: node.tlsFingerprint }),
    ...(node.nvidiaPayload === undefined ? {} : { nvidia_payload: node.nvidiaPayload }),
    event_log: JSON.stringify([
      { imr: 0, event_type: 1, digest: '00'.repeat(48), event: '', event_payload: '' },
      ...(node.os?.events ?? []),
      ...log,
    ]),
    ...(node.os && { vm_config: JSON.stringify(node.os.vmConfig) }),
    info: { app_id: 'x', tcb_info: { app_compose: node.appCompose } },
  }
}

/** The log as a guest keeps it, with what RTMR3 comes to. */
export function eventLog(events: readonly RuntimeEvent[]) {
  const log = events.map(logged)
  return { events: log, rtMr3: replay(log) }
}

function reportData({ nonce, layout, address, tlsSpkiSha256 }: DstackNode): Bytes {
  const bytes = fromHex(address)
  const first =
    layout === 'tls'
      ? sha256Of(bytes, fromHex(tlsSpkiSha256))
      : concatBytes(bytes, new Uint8Array(32 - bytes.length))
  return concatBytes(first, fromHex(nonce))
}

function logged({ name, payload, type = RUNTIME_EVENT }: RuntimeEvent) {
  const kind = Buffer.alloc(4)
  kind.writeUInt32LE(type)
  const preimage = [kind, Buffer.from(`:${name}:`), Buffer.from(payload, 'hex')]
  const digest = createHash('sha384').update(Buffer.concat(preimage)).digest('hex')
  return { imr: 3, event_type: type, digest, event: name, event_payload: payload }
}

function replay(log: readonly { digest: string }[]): Bytes {
  let value = Buffer.alloc(48)
  for (const { digest } of log) {
    value = createHash('sha384')
      .update(Buffer.concat([value, Buffer.from(digest, 'hex')]))
      .digest()
  }
  return copyBytes(value)
}
