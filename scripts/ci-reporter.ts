import { writeFileSync } from 'node:fs'
import { env } from 'node:process'
import { relative } from 'node:path'
import type { Reporter, SerializedError, TestCase, TestModule } from 'vitest/node'

const nameOf = (test: TestCase) =>
  `${relative(process.cwd(), test.module.moduleId)} > ${test.fullName}`

/**
 * Writes for `.ci/run` what a suite came to, as lines of `<what>\t<text>` in the file that `CI_REPORT` names: `passed`,
 * `failed` and `skipped` with a count, then a line for each failed test, each test that held only at its second try, and
 * each file that failed outside of its tests (`broken`).
 */
// oxlint-disable-next-line import/no-default-export -- vitest loads a reporter by its default export
export default class CiReporter implements Reporter {
  onTestRunEnd(modules: readonly TestModule[], errors: readonly SerializedError[]) {
    const tests = modules.flatMap((module) => [...module.children.allTests()])
    const inState = (state: string) => tests.filter((test) => test.result().state === state)
    const broken = modules.filter(
      (module) =>
        module.state() === 'failed' &&
        ![...module.children.allTests()].some((test) => test.result().state === 'failed'),
    )
    const lines = [
      ['passed', inState('passed').length],
      ['failed', inState('failed').length],
      ['skipped', inState('skipped').length],
      ...inState('failed').map((test) => ['failure', nameOf(test)]),
      ...tests.filter((test) => test.diagnostic()?.flaky).map((test) => ['flaky', nameOf(test)]),
      ...broken.map((module) => ['broken', relative(process.cwd(), module.moduleId)]),
      ...errors.map((error) => ['broken', error.message]),
    ]
    writeFileSync(env['CI_REPORT'] ?? '', lines.map((line) => `${line.join('\t')}\n`).join(''))
  }
}
