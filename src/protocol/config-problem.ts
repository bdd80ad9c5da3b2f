/** One problem with a configuration: where, and why. */
export interface ConfigProblem {
  /** Such as `routes[2].provider`. */
  readonly path: string
  readonly reason: string
}
