/** The levels of reasoning effort, weakest first ("Chat" in docs/api.md). */
export const EFFORTS = ['off', 'minimal', 'low', 'medium', 'high', 'xhigh', 'max'] as const

export type Effort = (typeof EFFORTS)[number]

/** The effort a request names; `none` is an alias of `off`; undefined for an unknown name. */
export function parseEffort(text: string): Effort | undefined {
  const name = text === 'none' ? 'off' : text
  return EFFORTS.find((effort) => effort === name)
}
