import type { ChildProcess } from 'node:child_process'
import {
  loadMessageSchema,
  type Load,
  type LoadPlan,
  type LoadResult,
  type WindowHooks,
} from './load-plan.ts'
import { startScript, stopProcess } from './processes.ts'

/** A load generator's process. */
export class LoadGenerator<Plan extends object = LoadPlan> implements Load<Plan> {
  readonly #child: ChildProcess

  /** @param script the file of this folder that takes the plans */
  constructor(script = 'load-generator.ts') {
    this.#child = startScript(script)
  }

  run(plan: Plan, hooks: WindowHooks): Promise<LoadResult> {
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
