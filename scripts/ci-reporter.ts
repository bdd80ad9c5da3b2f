import { writeFileSync } from 'node:fs'
import { env } from 'node:process'
import { relative } from 'node:path'
import type { Reporter, SerializedError, TestCase, TestModule } from 'vitest/node'

const pathOf = (module: TestModule) => relative(process.cwd(), module.moduleId)

/**
 * Writes for `.ci/run` what a run of tests came to, as lines of words with a tab between them, in the file that `CI_REPORT`
 * names: `file`, its path and how many of its tests passed, failed and were skipped; `failure`, the path and the name of a
 * test; `broken` and the path of a file that failed outside of its tests; `error` and what was thrown outside of all files. What
 * is thrown while a file runs of which a test fails is left out: a request that a failed test does not wait for any more fails, too.
 */
// oxlint-disable-next-line import/no-default-export -- vitest loads a reporter by its default export
export default class CiReporter implements Reporter {
  onTestRunEnd(modules: readonly TestModule[], errors: readonly SerializedError[]) {
    const failed = new Set(modules.filter(hasFailures).map(({ moduleId }) => moduleId))
    const others = errors.filter(({ VITEST_TEST_PATH: path }) => !failed.has(String(path)))
    const lines = [
      ...modules.flatMap(linesOf),
      ...others.map(({ message }) => ['error', message.split('\n', 1)[0] ?? '']),
    ]
    writeFileSync(env['CI_REPORT'] ?? '', lines.map((line) => `${line.join('\t')}\n`).join(''))
  }
}

const hasFailures = (module: TestModule) => module.children.allTests('failed').next().done === false

function linesOf(module: TestModule): (string | number)[][] {
  const path = pathOf(module)
  const tests = [...module.children.allTests()]
  const inState = (state: string) => tests.filter((test) => test.result().state === state)
  const failed = inState('failed')
  const isBroken = module.state() === 'failed' && failed.length === 0
  return [
    ['file', path, inState('passed').length, failed.length, inState('skipped').length],
    ...failed.map((test: TestCase) => ['failure', path, test.fullName]),
    ...(isBroken ? [['broken', path]] : []),
  ]
}
