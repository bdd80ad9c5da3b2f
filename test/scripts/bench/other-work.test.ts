import { expect, it } from 'vitest'
import { OtherWork } from '../../../scripts/bench/other-work.ts'

it('is the load of all processors besides this process and its children', () => {
  const used = { machine: 5_000_000, own: 1_000_000 }
  const meter = { machineUs: () => used.machine, ownUs: () => used.own, processors: 2 }
  const others = new OtherWork(10_000, meter)
  expect(others.share(11_000)).toBe(0)
  used.machine += 1_500_000
  used.own += 1_000_000
  expect(others.share(11_000)).toBe(0.25)
  // The kernel counts in ticks, so that what is one's own may be a little more than all.
  used.own += 600_000
  expect(others.share(11_000)).toBe(0)
})
