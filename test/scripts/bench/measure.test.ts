import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { describe, expect, it } from 'vitest'
import type { LoadResult } from '../../../scripts/bench/load-plan.ts'
import { sampleOf } from '../../../scripts/bench/measure.ts'
import {
  cpuTimesUs,
  machineCpuUs,
  residentMib,
  ticksOf,
  treeCpuUs,
  withChildren,
} from '../../../scripts/bench/processes.ts'
import { DATABASE } from '../../../scripts/bench/system.ts'

const RESULT: LoadResult = {
  completed: 4,
  failed: 0,
  failure: null,
  frames: 80,
  windowMs: 2_000,
  latenciesMs: [1, 2, 3, 4],
  firstDeltaMs: [5, 6, 7],
  gapMs: { p50: 20, p99: 41 },
}

const CPU_US = { workerd: 300, daemon: 100 }

describe('a window of the benchmark', () => {
  it('counts requests and frames per second, and CPU per request', () => {
    expect(sampleOf(RESULT, { cpuUs: CPU_US, residentMib: 64 }, false)).toEqual({
      perSecond: 2,
      p50Ms: 2,
      p99Ms: 4,
      firstDeltaP50Ms: 6,
      framesPerSecond: 40,
      gapP50Ms: 20,
      gapP99Ms: 41,
      cpuUs: 100,
      cpuUsBy: { workerd: 75, daemon: 25 },
      residentMib: 64,
      invalid: null,
    })
  })

  it('counts CPU per frame where streams are paced', () => {
    expect(sampleOf(RESULT, { cpuUs: CPU_US, residentMib: 0 }, true).cpuUs).toBe(5)
  })

  it('is invalid with a single failure', () => {
    const failed = { ...RESULT, failed: 1, failure: 'status 503' }
    expect(sampleOf(failed, { cpuUs: CPU_US, residentMib: 0 }, false).invalid).toBe(
      '1 failed: status 503',
    )
  })

  it('is invalid when nothing was completed', () => {
    const empty = { ...RESULT, completed: 0, latenciesMs: [] }
    expect(sampleOf(empty, { cpuUs: CPU_US, residentMib: 0 }, false).invalid).toBe(
      'nothing was completed',
    )
  })

  it('reads user and system time behind a command name with blanks and brackets', () => {
    const stat = '12 (node (main) x) S 1 12 12 0 -1 4194560 900 0 0 0 250 17 0 0 20 0 11 0 5'
    expect(ticksOf(stat)).toBe(267)
  })

  it('counts the children that a process has waited for', () => {
    const stat = '12 (postgres) S 1 12 12 0 -1 4194560 900 0 0 0 250 17 30 3 20 0 1 0 5'
    expect(ticksOf(stat)).toBe(300)
  })

  it('counts nothing of a process that is gone', () => {
    expect(ticksOf('')).toBe(0)
    const gone = { workerd: [2 ** 22 + 1] }
    expect(cpuTimesUs(gone)).toEqual({ workerd: 0 })
    expect(residentMib(gone)).toBe(0)
  })

  it('leaves the memory that the processes of a database share out of a system', () => {
    const own = residentMib({ node: [process.pid] })
    expect(own).toBeGreaterThan(1)
    expect(residentMib({ [DATABASE]: [process.pid] })).toBe(0)
  })

  it('finds the children of a process', async () => {
    const child = spawn('sleep', ['60'])
    const ended = once(child, 'exit')
    expect(withChildren(process.pid)).toEqual(expect.arrayContaining([child.pid, process.pid]))
    child.kill()
    await ended
    expect(withChildren(process.pid)).not.toContain(child.pid)
  })

  it('counts the CPU of a process with its descendants, and that of the machine', async () => {
    const [own, machine] = [treeCpuUs(process.pid), machineCpuUs()]
    const busy =
      'for (const end = process.cpuUsage().user + 300_000; process.cpuUsage().user < end; );'
    const child = spawn('sh', ['-c', '"$0" -e "$1"; exec sleep 60', process.execPath, busy])
    const used = () => treeCpuUs(process.pid) - own
    await expect.poll(used, { timeout: 60_000 }).toBeGreaterThanOrEqual(300_000)
    expect(machineCpuUs() - machine).toBeGreaterThanOrEqual(300_000)
    const ended = once(child, 'exit')
    child.kill()
    await ended
    expect(treeCpuUs(2 ** 22 + 1)).toBe(0)
  }, 90_000)
})
