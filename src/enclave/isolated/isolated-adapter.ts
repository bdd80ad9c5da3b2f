import { Worker } from 'node:worker_threads'
import { es256JwkSchema } from '../../protocol/jwk.ts'
import type { ProviderPolicy } from '../../protocol/provider-policy.ts'
import { EvidenceRefused, type RefusalCode } from '../../verify/evidence-refused.ts'
import type { AcceptedBundle } from '../../verify/trust-bundle.ts'
import { AdapterFailure } from './adapter-failure.ts'
import type { AdapterMemory, ObtainEvidence } from '../adapters/adapter.ts'
import { needsPublicCertificate, type OpenAdapter } from '../adapters/table.ts'
import type { VerifiedEvidence } from '../adapters/verified-evidence.ts'
import type { VerifyRequest, ThreadAnswer, ThreadData } from './messages.ts'

/** Limits for verifying one provider's evidence. Genuine evidence needs a tenth of them. Times in ms. */
export interface ThreadLimits {
  /** Maximum time between two messages of a running thread: a document that blocks it for longer is refused. */
  readonly silenceMs: number
  /** Maximum time for one verification, network included. */
  readonly verifyMs: number
  readonly heapMb: number
  readonly stackMb: number
  /** How long an idle thread is kept after a failure, for the next try. */
  readonly idleMs: number
}

/**
 * How long an idle thread is kept after a success, ms: the next verification is minutes away, and a thread takes 36
 * MiB.
 */
const DONE_MS = 1_000

export const THREAD_LIMITS: ThreadLimits = {
  silenceMs: 20_000,
  verifyMs: 55_000,
  heapMb: 256,
  stackMb: 4,
  idleMs: 90_000,
}

/** Calls `run` once after `ms` milliseconds, unless the returned function is called first. */
export type After = (ms: number, run: () => void) => () => void

export const afterReal: After = (ms, run) => {
  const timer = setTimeout(run, ms)
  return () => clearTimeout(timer)
}

export interface IsolationDeps {
  readonly data: ThreadData
  readonly limits: ThreadLimits
  readonly after: After
  /** The program of a thread, which answers each `VerifyRequest` with a `ThreadAnswer`. */
  readonly program: URL
}

export const ADAPTER_THREAD = new URL('./adapter-thread.ts', import.meta.url)

/**
 * Opens each provider's adapter in a thread of its own, so that a hostile document harms only that thread: not the
 * daemon's signing, its links, or another provider's proof. A provider can end its thread, so what must be remembered
 * between two verifications is stored here: the newest trust bundle of each release root, shared by all providers with
 * that root and kept when the configuration changes.
 */
export function isolateAdapters(deps: IsolationDeps): OpenAdapter {
  const accepted = new Map<string, AcceptedBundle>()
  return (attestation, subject) => {
    if (attestation.adapter === 'none') return undefined
    const host = new ThreadHost(deps)
    const root = rootOf(attestation)
    const obtain: ObtainEvidence = async () => {
      const memory = { lastAccepted: accepted.get(root) }
      const { evidence, memory: after } = await host.verify({ attestation, subject, memory })
      if (after.lastAccepted !== undefined) keepNewest(accepted, root, after.lastAccepted)
      return evidence
    }
    return {
      webPki: needsPublicCertificate(attestation.adapter),
      obtain,
      close: () => host.close(),
    }
  }
}

/**
 * The key under which the newest bundle of the policy's release root is stored; empty for policies without a root, for
 * which nothing is stored.
 */
function rootOf(attestation: ProviderPolicy): string {
  const root = attestation.adapter === 'envelope' ? attestation.root_key : undefined
  const key = es256JwkSchema.safeParse(root).data
  return key === undefined ? '' : `${key.x}.${key.y}`
}

/**
 * Stores the bundle as the newest of its root.
 * @throws EvidenceRefused where a newer bundle of the root was accepted since the verification began
 */
function keepNewest(all: Map<string, AcceptedBundle>, root: string, bundle: AcceptedBundle): void {
  const before = all.get(root)
  const isOlder = before !== undefined && before.version > bundle.version
  if (isOlder) throw new EvidenceRefused('trust_bundle', ['trust_bundle_version'])
  all.set(root, bundle)
}

interface Verified {
  readonly evidence: VerifiedEvidence
  readonly memory: AdapterMemory
}

/** One provider's thread: started for a verification, terminated when idle or as soon as it exceeds a limit. */
class ThreadHost {
  readonly #deps: IsolationDeps
  #thread: Worker | undefined
  /**
   * Whether this thread has sent a message. The silence limit applies only from then on, because a busy machine may
   * need long to start the thread.
   */
  #begun = false
  #idle: NodeJS.Timeout | undefined

  constructor(deps: IsolationDeps) {
    this.#deps = deps
  }

  /** Verifies once; calls must not overlap. */
  async verify(request: VerifyRequest): Promise<Verified> {
    clearTimeout(this.#idle)
    const thread = (this.#thread ??= this.#start())
    let keptMs = this.#deps.limits.idleMs
    try {
      const verified = await this.#request(thread, request)
      keptMs = DONE_MS
      return verified
    } finally {
      this.#idle = setTimeout(() => this.close(), keptMs).unref()
    }
  }

  close(): void {
    clearTimeout(this.#idle)
    void this.#thread?.terminate()
    this.#thread = undefined
  }

  #start(): Worker {
    const { program, data, limits } = this.#deps
    this.#begun = false
    const thread = new Worker(program, {
      workerData: data,
      // A thread gets neither the daemon's secrets nor its output streams.
      env: {},
      stdout: true,
      stderr: true,
      resourceLimits: {
        maxOldGenerationSizeMb: limits.heapMb,
        maxYoungGenerationSizeMb: Math.ceil(limits.heapMb / 8),
        stackSizeMb: limits.stackMb,
      },
    })
    thread.stdout.resume()
    thread.stderr.resume()
    // An error between two verifications affects no caller; the next verification starts a new thread.
    thread.on('error', () => this.#forget(thread)).on('exit', () => this.#forget(thread))
    // An idle thread must not keep the daemon from exiting.
    thread.unref()
    return thread
  }

  #forget(thread: Worker): void {
    if (this.#thread === thread) this.#thread = undefined
  }

  #request(thread: Worker, request: VerifyRequest): Promise<Verified> {
    const { limits, after } = this.#deps
    return new Promise((resolve, reject) => {
      // A thread that did not answer is in an unknown state: the next verification starts a new one.
      const endThread = (code: RefusalCode) => {
        settle(() => reject(new EvidenceRefused(code)))
        this.close()
      }
      const exhausting = () => endThread('exhausting')
      const listen = () => after(limits.silenceMs, exhausting)
      const stopWaiting = after(limits.verifyMs, () => endThread('unreachable'))
      let stopListening = this.#begun ? listen() : undefined
      const settle = (outcome: () => void) => {
        stopListening?.()
        stopWaiting()
        thread.off('message', onAnswer).off('error', onError).off('exit', onExit)
        outcome()
      }
      const onAnswer = (answer: ThreadAnswer) => {
        this.#begun = true
        stopListening?.()
        stopListening = listen()
        if (answer.type === 'verified') settle(() => resolve(answer))
        if (answer.type === 'refused') {
          settle(() => reject(new EvidenceRefused(answer.code, answer.checks)))
        }
        if (answer.type === 'failed') settle(() => reject(new AdapterFailure(answer.trace)))
      }
      const onError = (error: Error & { code?: string }) =>
        error.code === 'ERR_WORKER_OUT_OF_MEMORY' ? exhausting() : settle(() => reject(error))
      const onExit = () => settle(() => reject(new Error('the thread of an adapter ended')))
      thread.on('message', onAnswer).on('error', onError).on('exit', onExit)
      // oxlint-disable-next-line unicorn/require-post-message-target-origin -- a thread has no origin
      thread.postMessage(request)
    })
  }
}
