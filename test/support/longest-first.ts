import { relative, sep } from 'node:path'
import { BaseSequencer, type TestSpecification } from 'vitest/node'

/**
 * The files that take longest, of each project the longest first: a run is over only when its last file is, and a fresh
 * clone does not know yet how long they take. Of all others the larger ones go first, or those that took longer the
 * last time.
 */
export const LONGEST: readonly string[] = [
  // Unit suites
  'test/worker/settle/engines.test.ts',
  'test/enclave/isolated/isolated-adapter.test.ts',
  'test/enclave/main.test.ts',
  'test/worker/storage/postgres.test.ts',
  'test/worker/storage/sqlite.test.ts',
  'test/enclave/egress/exchange.test.ts',
  'test/worker/storage/postgres-tls.test.ts',
  'test/client/tamper.test.ts',
  'test/worker/storage/migration.test.ts',
  'test/scripts/help.test.ts',
  'test/worker/storage/postgres-functions.test.ts',
  'test/verify/bit-flips.test.ts',
  // Whole-app suites
  'test/app/faults/storage.test.ts',
  'test/app/attested.test.ts',
  'test/app/strangers.test.ts',
  'test/app/faults/provider.test.ts',
  'test/app/operations.test.ts',
  'test/app/leaks.test.ts',
  'test/app/client-docs.test.ts',
  'test/app/limits.test.ts',
  'test/app/serve.test.ts',
  'test/app/idempotency-fleet.test.ts',
  'test/app/overload.test.ts',
  'test/app/two-instances.test.ts',
  'test/app/openapi.test.ts',
  'test/app/transcription-faults.test.ts',
  'test/app/sdk-matrix.test.ts',
  'test/app/ehbp.test.ts',
  'test/app/telemetry.test.ts',
  'test/app/transcription-errors.test.ts',
  'test/app/faults/failover.test.ts',
  'test/app/tls.test.ts',
  'test/app/fleet.test.ts',
]

/** Test files in the order in which their projects begin them: the longest first, so that no worker is left with one at the end. */
export class LongestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const ranks = new Map(files.map((file) => [file, rankOf(file)]))
    const rank = (file: TestSpecification) => ranks.get(file) ?? LONGEST.length
    const group = (file: TestSpecification) => file.project.config.sequence.groupOrder
    // oxlint-disable-next-line unicorn/no-array-sort -- the method of the class above
    const known = await super.sort(files)
    return known.toSorted((a, b) => group(a) - group(b) || rank(a) - rank(b))
  }
}

function rankOf({ moduleId }: TestSpecification): number {
  const path = relative(process.cwd(), moduleId).split(sep).join('/')
  const index = LONGEST.indexOf(path)
  return index === -1 ? LONGEST.length : index
}
