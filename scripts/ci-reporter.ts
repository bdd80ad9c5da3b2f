import { writeFileSync } from 'node:fs'
import { env } from 'node:process'
import { relative } from 'node:path'
import type { Reporter, SerializedError, TestCase, TestModule } from 'vitest/node'

const pathOf = (module: TestModule) => relative(process.cwd(), module.moduleId)

/**
 * A vitest reporter that writes the results of a run for `.ci/run`, to the file that `CI_REPORT` names. Each line has
 * tab-separated fields:
 *
 * - `file`, path, and the numbers of passed, failed and skipped tests;
 * - `failure`, path, and name of a failed test;
 * - `broken`, and the path of a file that failed outside of its tests;
 * - `error`, and the first line of an error that was thrown outside of the tests.
 *
 * Leaves out errors thrown while a file with a failed test ran: they are often a consequence of that failure, such as a
 * request that the failed test no longer awaits.
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
