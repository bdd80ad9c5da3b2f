import { availableParallelism } from 'node:os'
import { defineConfig } from 'vitest/config'
import { LongestFirst } from './test/support/longest-first.ts'

/**
 * Unit suites run side by side; the whole-app suites start real stacks and run apart from them, four at a time, because
 * they often wait. The long suites (crashes, restarts, load, lost storage, many mutated inputs, pages in Chromium) take minutes and run
 * two at a time, because they often wait, too: `npm run test:long`.
 */
export default defineConfig({
  test: {
    globalSetup: ['test/support/simulated-platform.ts', 'test/support/compile-cache.ts'],
    sequence: { sequencer: LongestFirst },
    projects: [
      {
        test: {
          name: 'unit',
          // One more than there are cores, because some wait for processes that they start.
          maxWorkers: availableParallelism() + 1,
          // No module keeps state that one file could leave to another; loading all of them for each takes a third of the time.
          isolate: false,
          include: ['test/**/*.test.ts'],
          exclude: ['test/app/**', 'test/long/**'],
          testTimeout: 60_000,
          hookTimeout: 120_000,
          expect: { poll: { timeout: 30_000 } },
          sequence: { groupOrder: 0 },
        },
      },
      {
        test: {
          name: 'app',
          globalSetup: 'test/support/worker-bundle.ts',
          include: ['test/app/**/*.test.ts'],
          maxWorkers: 4,
          // As above; and what a file leaves behind has no names that the next one could meet: stacks have ports and files of their own.
          isolate: false,
          testTimeout: 120_000,
          hookTimeout: 120_000,
          expect: { poll: { timeout: 30_000 } },
          sequence: { groupOrder: 1 },
        },
      },
      {
        test: {
          name: 'long',
          globalSetup: 'test/support/worker-bundle.ts',
          include: [
            'test/long/**/*.test.ts',
            'test/verify/fuzz.test.ts',
            'test/verify/bit-flips.test.ts',
          ],
          env: { FUZZ_CASES: '1000', EVERY_BYTE: '1' },
          maxWorkers: 2,
          testTimeout: 120_000,
          hookTimeout: 120_000,
          expect: { poll: { timeout: 30_000 } },
          sequence: { groupOrder: 2 },
        },
      },
    ],
  },
})
