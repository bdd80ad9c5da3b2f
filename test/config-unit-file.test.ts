import { readFileSync } from 'node:fs'
import { expect, test } from 'vitest'

/** The sample unit of systemd and the page that describes it. */

const text = (path: string) => readFileSync(new URL(`../${path}`, import.meta.url), 'utf8')

test('the program that the sample unit sends its signals to is the router itself', () => {
  const unit = text('config/confidential-model-router.service')
  expect(unit).toContain('ExecReload=/bin/kill -HUP $MAINPID\n')
  expect(unit).toMatch(/^ExecStart=\S+\/node_modules\/\.bin\/node src\/cli\/main\.ts serve /m)
})

test('the sample unit writes no core files and no memory to swap, and the page says to switch swap off', () => {
  const unit = text('config/confidential-model-router.service').split('\n')
  expect(unit).toEqual(expect.arrayContaining(['LimitCORE=0', 'MemorySwapMax=0']))
  expect(text('docs/operations.md')).toContain('swapoff --all')
})

test('the sample unit names the capabilities that reports and an ACME authority take of an account other than root', () => {
  const unit = text('config/confidential-model-router.service')
  expect(unit).toMatch(/^User=router$/m)
  expect(unit).toMatch(/^#AmbientCapabilities=CAP_DAC_OVERRIDE CAP_NET_BIND_SERVICE$/m)
})
