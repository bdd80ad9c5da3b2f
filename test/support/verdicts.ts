import { expect, vi } from 'vitest'
import { MalformedEvidence } from '../../src/protocol/malformed-evidence.ts'
import type { Verdict } from '../../src/verify/check.ts'

/** Synthetic evidence comes with RSA keys of its own, which take seconds to make on a busy machine. */
vi.setConfig({ testTimeout: 60_000, hookTimeout: 60_000 })

/** Failed checks as `name: detail`. */
export function failures({ checks }: Verdict): string[] {
  return checks.filter(({ ok }) => !ok).map(({ name, detail }) => `${name}: ${detail}`)
}

/** Asserts that exactly one check fails, this one, and with this detail. */
export function expectOnly(result: Verdict, name: string, detail: string | RegExp): void {
  const failed = result.checks.filter(({ ok }) => !ok)
  expect(failures(result), 'exactly one check fails').toHaveLength(1)
  expect(failed[0]?.name).toBe(name)
  expect(failed[0]?.detail).toMatch(detail)
  expect(result.ok).toBe(false)
}

/** Asserts that evidence is refused as unreadable, for this reason. */
export async function expectMalformed(
  attempt: () => unknown,
  document: string,
  reason: string | RegExp,
): Promise<void> {
  const error: unknown = await Promise.resolve()
    .then(attempt)
    .then(
      () => new Error('it was read'),
      (thrown: unknown) => thrown,
    )
  expect(error).toBeInstanceOf(MalformedEvidence)
  if (!(error instanceof MalformedEvidence)) return
  expect(error.document).toBe(document)
  expect(error.reason).toMatch(reason)
}
