import { readFileSync } from 'node:fs'
import { expect, test } from 'vitest'

/** The sample unit of systemd and the page that describes it. */

const text = (path: string) => readFileSync(new URL(`../${path}`, import.meta.url), 'utf8')

test('the sample unit writes no core files and no memory to swap, and the page says to switch swap off', () => {
  const unit = text('config/confidential-model-router.service').split('\n')
  expect(unit).toEqual(expect.arrayContaining(['LimitCORE=0', 'MemorySwapMax=0']))
  expect(text('docs/operations.md')).toContain('swapoff --all')
})
