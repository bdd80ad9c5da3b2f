/** One problem with a configuration: where, and why. */
export interface ConfigProblem {
  /** Such as `routes[2].provider`. */
  readonly path: string
  readonly reason: string
}

/** `routes[2].reasoning.efforts.off`; the empty path is the file itself. */
export function formatPath(path: readonly PropertyKey[]): string {
  let text = ''
  for (const part of path) {
    if (typeof part === 'number') text += `[${part}]`
    else if (/^[A-Za-z_$][\w$]*$/.test(String(part))) text += `${text && '.'}${String(part)}`
    else text += `[${JSON.stringify(String(part))}]`
  }
  return text || '(the whole file)'
}
