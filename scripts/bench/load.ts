import type { ChildProcess } from 'node:child_process'
import { loadMessageSchema, type LoadPlan, type LoadResult } from './load-plan.ts'
import { startScript, stopProcess } from './processes.ts'

export interface WindowHooks {
  readonly opened: () => void
  readonly closed: () => void
}

/** The load generator's process. */
export class LoadGenerator {
  readonly #child: ChildProcess = startScript('load-generator.ts')

  /** Runs one window; the hooks are called as it opens and closes. */
  run(plan: LoadPlan, hooks: WindowHooks): Promise<LoadResult> {
    const { promise, resolve, reject } = Promise.withResolvers<LoadResult>()
    const ended = () => reject(new Error('the load generator ended early'))
    const take = (received: unknown) => {
      const message = loadMessageSchema.parse(received)
      if (message.type === 'window_opened') hooks.opened()
      else if (message.type === 'window_closed') hooks.closed()
      else resolve(message.result)
    }
    this.#child.on('message', take)
    this.#child.once('exit', ended)
    this.#child.send(plan)
    return promise.finally(() => {
      this.#child.off('message', take)
      this.#child.off('exit', ended)
    })
  }

  stop(): Promise<void> {
    return stopProcess(this.#child)
  }
}
