import * as z from 'zod'
import { MODES } from './config.ts'
import type { UnsealDocument } from './unseal.ts'

/**
 * The messages between supervisor and enclave daemon over the child process's IPC channel. Private keys travel here and
 * nowhere else: the channel is a socket pair between parent and child, never a file.
 */

export const PLATFORMS = ['simulated', 'configfs-tsm'] as const

const pemSchema = z.string().startsWith('-----BEGIN ')

const tlsMaterialSchema = z.strictObject({ certPem: pemSchema, keyPem: pemSchema })

/** A simulated chip: its chain, and its signing key (PKCS #8, base64), worthless outside the local stack. */
export const simulatedChipSchema = z.strictObject({
  product: z.enum(['milan', 'genoa', 'turin']),
  chipId: z.string(),
  tcb: z.record(z.string(), z.int()),
  chainPem: pemSchema,
  arkSpkiSha256: z.string(),
  /** The root's revocation list in DER, base64. */
  crlDer: z.string(),
  vekPkcs8: z.string(),
})

/**
 * The temporary release of a local stack. The daemon generates it once; the supervisor keeps it in memory and passes it
 * back after a restart, so that one run of the stack has one root, one bundle and one simulated chip.
 */
const localReleaseSchema = z.strictObject({
  rootPublicJwk: z.record(z.string(), z.json()),
  manifestJws: z.string(),
  bundleJws: z.string(),
  simulated: simulatedChipSchema.nullable(),
})

const portSchema = z.int().min(0).max(65_535)

/** The server end of a link: it accepts only one client certificate, and its client accepts only its certificate. */
export const linkServerSchema = z.strictObject({
  /** 0 = any free port. */
  port: portSchema,
  host: z.literal('127.0.0.1'),
  serverCertPem: pemSchema,
  serverKeyPem: pemSchema,
  /** The only client certificate that the link accepts. */
  workerCertPem: pemSchema,
})

export const daemonBootSchema = z.strictObject({
  /** Fixed for the life of the daemon; a configuration that names the other one is refused. */
  mode: z.enum(MODES),
  configPath: z.string().min(1),
  /**
   * The configuration to use; files that it names are relative to `configPath`. Null: the daemon reads it from that
   * path, and again when the file changes. In production the supervisor supplies it, so that a changed file has no
   * effect before a reload is requested, not even when the daemon is restarted.
   */
  configText: z.string().nullable(),
  stateDir: z.string().min(1),
  /** Null: the router is sealed, and receives this and every other secret in a document of its operator. */
  adminToken: z.string().min(1).nullable(),
  link: linkServerSchema,
  /**
   * Ports of carriers: further threads that carry calls and sign receipts. Each serves the complete link with the same
   * certificates; 0 = any free port. Without carriers the main thread does their work.
   */
  carrierPorts: z.array(portSchema).max(64).optional(),
  /** How many streams whose chunks one thread writes may be open, or wait for their worker to fetch the record. */
  maxStreams: z.int().min(1),
  platform: z.enum(PLATFORMS),
  /**
   * The address at which clients reach a local stack; null in production, where the configuration states the address.
   */
  ownUrl: z.url().nullable(),
  /** Passed back after a restart of the daemon; null: the daemon generates a key and a certificate. */
  tls: tlsMaterialSchema.nullable(),
  /** `DaemonReady.release` of an earlier start in the same run of the stack. */
  release: localReleaseSchema.nullable(),
  /** Values of variables that the configuration names; they take precedence over the environment. */
  secrets: z.record(z.string(), z.string()).optional(),
  /** The worker's bundle, whose digest the local manifest names. */
  workerBundlePath: z.string().optional(),
})

/** Messages to the daemon. `boot` is the first and is sent once. */
export const toDaemonSchema = z.discriminatedUnion('type', [
  z.strictObject({ type: z.literal('boot'), boot: daemonBootSchema }),
  z.strictObject({
    type: z.literal('reload'),
    /** Repeated in the answer to this reload. */
    id: z.int().optional(),
    /** As in `boot`; if absent, the last supplied text is checked again, or the file is read again. */
    configText: z.string().optional(),
    /** As in `boot`; they replace all earlier ones once the configuration is in effect. If absent, those are kept. */
    secrets: z.record(z.string(), z.string()).optional(),
    adminToken: z.string().min(1).optional(),
  }),
  /** The answer to `unseal_offered`: null where the secrets took effect, else the reason why not. */
  z.strictObject({ type: z.literal('unseal_answered'), problem: z.string().nullable() }),
  /** Requests a key that is not in use yet, so that a certificate for it can be ordered. */
  z.strictObject({ type: z.literal('prepare_tls'), domains: z.array(z.string()) }),
  /** Terminates the carrier that listens on this port and no longer answers; the daemon starts it again. */
  z.strictObject({ type: z.literal('end_carrier'), port: portSchema }),
  /** Reports how many clients were disconnected because they did not read; the daemon counts them in the metrics. */
  z.strictObject({ type: z.literal('clients_unread'), count: z.int().min(1) }),
  /** Switches to this key, or to a new one. */
  z.strictObject({ type: z.literal('renew_tls'), tls: tlsMaterialSchema.optional() }),
])

export interface DaemonTls extends TlsMaterial {
  /** SHA-256 of the certificate's SubjectPublicKeyInfo, lowercase hex. */
  readonly spkiSha256: string
}

export interface DaemonReady {
  readonly linkPort: number
  /** In the order of `DaemonBoot.carrierPorts`. */
  readonly carrierPorts: readonly number[]
  readonly tls: DaemonTls
  readonly kid: string
  /** File with the release root's public JWK. */
  readonly rootKeyPath: string
  readonly generation: number
  /** To be passed back in `DaemonBoot.release`; null where the release comes from files. */
  readonly release: LocalRelease | null
}

/** The result of a reload, with the `id` from the supervisor's message, if it had one. */
export type ReloadAnswer = { readonly id?: number | undefined } & (
  | /** The configuration with this text is now in effect. */
    { readonly type: 'reloaded'; readonly generation: number; readonly configText: string }
  | { readonly type: 'reload_refused'; readonly reason: string }
  /** The configuration that was read is already in effect. */
  | { readonly type: 'reload_unchanged' }
)

/** Messages from the daemon. After `refused` it exits with status 1. */
export type FromDaemon =
  | { readonly type: 'ready'; readonly ready: DaemonReady }
  | { readonly type: 'refused'; readonly reason: string }
  | ReloadAnswer
  /** An unseal document was accepted; the supervisor applies its secrets and answers. One at a time. */
  | { readonly type: 'unseal_offered'; readonly document: UnsealDocument }
  | { readonly type: 'tls_prepared'; readonly tls: DaemonTls }
  /** The current envelope names this key from now on. */
  | { readonly type: 'tls_renewed'; readonly tls: DaemonTls }
  | { readonly type: 'tls_refused'; readonly reason: string }
  | { readonly type: 'attestation_failed'; readonly reason: string }
  | { readonly type: 'attestation_restored' }
  /** The current envelope lacks AMD's revocation list. */
  | { readonly type: 'revocation_list_missing'; readonly reason: string }
  | { readonly type: 'clock_behind'; readonly reason: string }
  /** A carrier ended by an error; it is started again. `reason` names it. */
  | { readonly type: 'carrier_lost'; readonly reason: string }
  | { readonly type: 'carrier_restored'; readonly reason: string }

export type Platform = (typeof PLATFORMS)[number]
export type LinkServerPlan = z.output<typeof linkServerSchema>
export type DaemonBoot = z.output<typeof daemonBootSchema>
export type ToDaemon = z.input<typeof toDaemonSchema>
export type TlsMaterial = z.output<typeof tlsMaterialSchema>
export type SimulatedChipKeys = z.output<typeof simulatedChipSchema>
export type LocalRelease = z.output<typeof localReleaseSchema>
