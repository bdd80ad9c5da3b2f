import { es256JwkSchema, type Es256Jwk } from '../protocol/jwk.ts'
import { namesUser } from '../protocol/url-user.ts'
import type { AcceptedBundle } from '../verify/trust-bundle.ts'
import type { Anchor } from '../verify/snp/anchors.ts'
import type { JudgeProviderHop } from '../verify/receipt-provider.ts'
import { readLogPolicy, type LogPolicy } from '../verify/transparency/log-policy.ts'
import { TransparencyError } from '../verify/transparency/transparency-error.ts'
import { ClientError } from './errors.ts'
import type { ReceiptOutcome } from './receipt-outcome.ts'

/** The options of a client. */
export interface ClientOptions {
  /** The router's address, with or without `/v1`. */
  readonly baseURL: string
  /** The release root's public JWK, which the operator publishes and you have checked. */
  readonly rootKey: unknown
  /** The required environment of the trust bundle; `production` by default. */
  readonly environment?: string
  readonly policy?: ClientPolicy
  /**
   * `tls`: the TLS key of each connection is compared with the evidence. `ehbp`: bodies are encrypted to an HPKE key
   * that the evidence names, for runtimes that do not expose the TLS key: the default in browsers and under Bun before 1.4.
   */
  readonly transport?: TransportName
  /** Where the newest accepted trust bundle is stored; see `BundleState`. */
  readonly state?: BundleState
  /** Called for every answer that should have a receipt, once it is verified. It must not throw. */
  readonly onReceipt?: (outcome: ReceiptOutcome) => void
  /** Ends an answer with an error where its receipt is missing or does not hold. */
  readonly requireReceipt?: boolean
}

export type TransportName = 'tls' | 'ehbp'

export interface ClientPolicy {
  /** Accepts a simulated platform, which proves nothing; only for trials. */
  readonly allowSimulated?: boolean
  /** Evidence older than this is fetched again, in addition to the evidence's own limit. */
  readonly maxAgeSeconds?: number
  /** Refuses evidence without AMD's revocation list. */
  readonly requireCrl?: boolean
  /**
   * The public log that must contain bundle and manifest: a policy document as for `verify attestation --log-policy`.
   */
  readonly logPolicy?: unknown
  /**
   * Judges the provider's hop of receipts under your own policy; without it the hop is reported as the router recorded
   * it.
   */
  readonly judgeProviderHop?: JudgeProviderHop
  /** A receipt holds only where `judgeProviderHop` found its provider attested. */
  readonly requireProvider?: boolean
}

/** A stored bundle; earlier versions stored it without its text. */
export interface StoredBundle extends AcceptedBundle {
  readonly jws?: string | undefined
}

/** Stores the newest accepted bundle of each release root, so that an older one is refused later. */
export interface BundleState {
  read(rootJwk: unknown): Promise<StoredBundle | undefined>
  write(accepted: StoredBundle): Promise<void>
}

/** The dependencies of a client, replaceable in tests. */
export interface ClientDeps {
  /** Milliseconds since 1970. */
  readonly now: () => number
  /** 32 fresh random bytes in hex. */
  readonly nonce: () => string
  /** Replaces AMD's roots. */
  readonly anchors?: readonly Anchor[]
  /** Replaces the runtime's `fetch`, for `ehbp`. */
  readonly fetch?: typeof fetch
  /** Resolves after this many milliseconds. */
  readonly pause?: (milliseconds: number) => Promise<void>
}

/** Checked options. */
export interface Settings {
  readonly base: URL
  readonly rootJwk: Es256Jwk
  readonly environments: readonly string[]
  readonly policy: ClientPolicy
  readonly logPolicy: LogPolicy | undefined
  readonly deps: ClientDeps
}

/** @throws ClientError when an option cannot be used (`invalid_options`); the message names it */
export function readOptions(options: ClientOptions, deps: ClientDeps): Settings {
  const base = URL.canParse(options.baseURL) ? new URL(options.baseURL) : undefined
  if (base?.protocol !== 'https:' && base?.protocol !== 'http:') {
    throw new ClientError('invalid_options', 'baseURL: give the address of the router')
  }
  if (namesUser(base)) {
    throw new ClientError(
      'invalid_options',
      'baseURL: leave out user name and password, which no request takes along',
    )
  }
  base.pathname = base.pathname.replace(/\/(v1\/?)?$/, '')
  const root = es256JwkSchema.safeParse(options.rootKey)
  if (!root.success) {
    throw new ClientError('invalid_options', "rootKey: give the release root's public JWK")
  }
  const { environment, policy = {} } = options
  const standard = policy.allowSimulated === true ? ['production', 'local'] : ['production']
  return {
    base,
    rootJwk: root.data,
    environments: environment === undefined ? standard : [environment],
    policy,
    logPolicy: logPolicyOf(policy),
    deps,
  }
}

function logPolicyOf({ logPolicy }: ClientPolicy): LogPolicy | undefined {
  if (logPolicy === undefined) return undefined
  try {
    return readLogPolicy(logPolicy)
  } catch (cause) {
    if (!(cause instanceof TransparencyError)) throw cause
    throw new ClientError('invalid_options', `policy.logPolicy: ${cause.message}`, { cause })
  }
}

/** The address of a path of the router, such as `/attestation`. */
export function addressOf({ base }: Pick<Settings, 'base'>, path: string): URL {
  return new URL(base.pathname.replace(/\/$/, '') + path, base)
}
