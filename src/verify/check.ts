import { PROVES, type CheckName } from './check-names.ts'

/** The result of one check. A failed check is a value, so that it cannot be lost by a forgotten catch. */
export interface Check {
  readonly name: string
  readonly ok: boolean
  /** What was found if the check holds, or what is wrong if it does not. */
  readonly detail: string
  /** What a relying party knows once this check holds. */
  readonly proves: string
}

/** The result of a list of checks. It is ok when there is at least one check and all of them hold. */
export interface Verdict {
  readonly ok: boolean
  readonly checks: readonly Check[]
}

/** A check that fails with the given fault, and holds with `detail` where there is none. */
export function judge(name: CheckName, fault: string | undefined, detail: string): Check {
  return { name, ok: fault === undefined, detail: fault ?? detail, proves: PROVES[name] }
}

/** The first fault whose condition is true. */
export function firstFault(...faults: readonly (string | false | undefined)[]): string | undefined {
  return faults.find((fault): fault is string => typeof fault === 'string')
}

export function verdict(checks: readonly Check[]): Verdict {
  return { ok: checks.length > 0 && checks.every(({ ok }) => ok), checks }
}

/** Renames checks to `prefix.name`, for results that contain the checks of several documents. */
export function prefixed(prefix: string, checks: readonly Check[]): Check[] {
  return checks.map((one) => ({ ...one, name: `${prefix}.${one.name}` }))
}
