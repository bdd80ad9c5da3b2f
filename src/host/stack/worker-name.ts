/** The name of a worker in its log and on the screen. */
export type WorkerName = 'worker' | `worker-${number}`

export function workerNames(count: number): WorkerName[] {
  const further = Array.from({ length: count - 1 }, (_, index) => `worker-${index + 2}` as const)
  return ['worker', ...further]
}
