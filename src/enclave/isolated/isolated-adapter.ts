import { Worker } from 'node:worker_threads'
import { EvidenceRefused, type RefusalCode } from '../../verify/evidence-refused.ts'
import { AdapterFailure } from './adapter-failure.ts'
import type { AdapterMemory, ObtainEvidence } from '../adapters/adapter.ts'
import { needsPublicCertificate, type OpenAdapter } from '../adapters/table.ts'
import type { VerifiedEvidence } from '../adapters/verified-evidence.ts'
import type { Look, ThreadAnswer, ThreadData } from './messages.ts'

/** What one provider's evidence may cost. An honest one needs a tenth of it. */
export interface ThreadLimits {
  /**
   * Longest time without a sign of life of a thread that has begun: a document that keeps it busy for so long is none to
   * read.
   */
  readonly silenceMs: number
  /** Longest time for one look, whatever the network does. */
  readonly lookMs: number
  readonly heapMb: number
  readonly stackMb: number
  /** How long an idle thread is kept for the next look. */
  readonly idleMs: number
}

export const THREAD_LIMITS: ThreadLimits = {
  silenceMs: 20_000,
  lookMs: 55_000,
  heapMb: 256,
  stackMb: 4,
  idleMs: 90_000,
}

/** Calls `run` once in so many milliseconds, unless what it returns is called before. */
export type After = (ms: number, run: () => void) => () => void

export const afterReal: After = (ms, run) => {
  const timer = setTimeout(run, ms)
  return () => clearTimeout(timer)
}

export interface IsolationDeps {
  readonly data: ThreadData
  readonly limits: ThreadLimits
  readonly after: After
  /** The program of a thread, which answers a `Look` with a `ThreadAnswer`. */
  readonly program: URL
}

export const ADAPTER_THREAD = new URL('./adapter-thread.ts', import.meta.url)

/**
 * Opens adapters in a thread for each provider, so that a hostile document costs that thread and nothing else: not the
 * daemon's signing, not its links, not another provider's proof. What must be remembered between two looks is kept
 * here, because a provider can end its thread.
 */
export function isolateAdapters(deps: IsolationDeps): OpenAdapter {
  return (attestation, subject) => {
    if (attestation.adapter === 'none') return undefined
    const host = new ThreadHost(deps)
    let memory: AdapterMemory = {}
    const obtain: ObtainEvidence = async () => {
      const looked = await host.look({ attestation, subject, memory })
      memory = looked.memory
      return looked.evidence
    }
    return {
      webPki: needsPublicCertificate(attestation.adapter),
      obtain,
      close: () => host.close(),
    }
  }
}

interface Looked {
  readonly evidence: VerifiedEvidence
  readonly memory: AdapterMemory
}

/** Keeps one provider's thread: started for a look, ended when idle, or as soon as it breaks a limit. */
class ThreadHost {
  readonly #deps: IsolationDeps
  #thread: Worker | undefined
  /** Whether this thread has given a sign of life: what a busy machine needs to start one is no fault of a document. */
  #begun = false
  #idle: NodeJS.Timeout | undefined

  constructor(deps: IsolationDeps) {
    this.#deps = deps
  }

  /** One look at a time. */
  async look(look: Look): Promise<Looked> {
    clearTimeout(this.#idle)
    const thread = (this.#thread ??= this.#start())
    try {
      return await this.#ask(thread, look)
    } finally {
      this.#idle = setTimeout(() => this.close(), this.#deps.limits.idleMs).unref()
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
      // A thread has no business with the daemon's secrets, nor with its output.
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
    // An error between two looks is nobody's; the next look finds the thread gone.
    thread.on('error', () => this.#forget(thread)).on('exit', () => this.#forget(thread))
    // The daemon may end while a thread is idle.
    thread.unref()
    return thread
  }

  #forget(thread: Worker): void {
    if (this.#thread === thread) this.#thread = undefined
  }

  #ask(thread: Worker, look: Look): Promise<Looked> {
    const { limits, after } = this.#deps
    return new Promise((resolve, reject) => {
      // A thread that did not answer may be anywhere in its work: the next look begins with a new one.
      const endThread = (code: RefusalCode) => {
        settle(() => reject(new EvidenceRefused(code)))
        this.close()
      }
      const exhausting = () => endThread('exhausting')
      const listen = () => after(limits.silenceMs, exhausting)
      const stopWaiting = after(limits.lookMs, () => endThread('unreachable'))
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
      // eslint-disable-next-line unicorn/require-post-message-target-origin -- a thread has no origin
      thread.postMessage(look)
    })
  }
}
