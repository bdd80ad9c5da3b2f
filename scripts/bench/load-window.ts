import { setTimeout as delay } from 'node:timers/promises'
import { percentile } from './figures.ts'
import type { LoadPlan, LoadResult } from './load-plan.ts'

/** The measurements of an open window. */
export class LoadWindow {
  readonly #latencies: number[] = []
  readonly #firstDeltas: number[] = []
  readonly #gaps: number[] = []
  #openedAt = Number.POSITIVE_INFINITY
  #closedAt = Number.POSITIVE_INFINITY
  #frames = 0
  #failed = 0
  #failure: string | null = null

  get isClosed(): boolean {
    return this.#closedAt !== Number.POSITIVE_INFINITY
  }

  /** Opens and closes the window while the load runs, and notifies the parent process each time. */
  async pass({ warmMs, windowMs }: Pick<LoadPlan, 'warmMs' | 'windowMs'>): Promise<void> {
    await delay(warmMs)
    this.#openedAt = performance.now()
    process.send?.({ type: 'window_opened' })
    await delay(windowMs)
    this.#closedAt = performance.now()
    process.send?.({ type: 'window_closed' })
  }

  frames(count: number): void {
    if (this.#isOpen) this.#frames += count
  }

  gap(ms: number): void {
    if (this.#isOpen) this.#gaps.push(ms)
  }

  firstDelta(ms: number): void {
    if (this.#isOpen) this.#firstDeltas.push(ms)
  }

  completed(ms: number): void {
    if (this.#isOpen) this.#latencies.push(ms)
  }

  failed(reason: string): void {
    this.#failed += 1
    this.#failure ??= reason
  }

  get result(): LoadResult {
    return {
      completed: this.#latencies.length,
      failed: this.#failed,
      failure: this.#failure,
      frames: this.#frames,
      windowMs: this.#closedAt - this.#openedAt,
      latenciesMs: this.#latencies,
      firstDeltaMs: this.#firstDeltas,
      gapMs:
        this.#gaps.length === 0
          ? null
          : { p50: percentile(this.#gaps, 50), p99: percentile(this.#gaps, 99) },
    }
  }

  get #isOpen(): boolean {
    return this.#openedAt !== Number.POSITIVE_INFINITY && !this.isClosed
  }
}
