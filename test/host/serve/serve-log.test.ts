import {
  appendFileSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import { openServeLog, tendLogs } from '../../../src/host/serve/serve-log.ts'
import { openStateDir, type StateDir } from '../../../src/host/stack/state-dir.ts'

let directory: string
let state: StateDir
let file: string

beforeEach(() => {
  vi.spyOn(console, 'log').mockImplementation(() => {})
  directory = mkdtempSync(join(tmpdir(), 'cmr-serve-log-'))
  state = openStateDir(directory)
  file = join(state.directory('log'), 'serve.log')
})
afterEach(() => {
  vi.restoreAllMocks()
  vi.useRealTimers()
  rmSync(directory, { recursive: true })
})

describe('the log of a serving router', () => {
  test('has each line with its time, and is readable by its owner alone', () => {
    openServeLog(state, false)('  worker   up')
    expect(readFileSync(file, 'utf8')).toMatch(/^\d{4}-\d\d-\d\dT[\d:.]+Z worker {3}up\n$/)
    expect(statSync(file).mode & 0o777).toBe(0o600)
  })

  test('is set aside at a start when it is above 16 MiB', () => {
    writeFileSync(file, 'x'.repeat(16 * 1024 * 1024 + 1))
    openServeLog(state, false)('  worker   up')
    expect(statSync(`${file}.1`).size).toBe(16 * 1024 * 1024 + 1)
    expect(readFileSync(file, 'utf8')).toMatch(/ worker {3}up\n$/)
    openServeLog(state, false)('  worker   up again')
    expect(readFileSync(file, 'utf8').trim().split('\n')).toHaveLength(2)
  })

  test('that cannot be written, as on a full disk, leaves the line on the console', () => {
    symlinkSync('/dev/full', file)
    openServeLog(state, false)('  worker   up')
    expect(console.log).toHaveBeenCalledExactlyOnceWith('  worker   up')
  })
})

describe('the logs of the parts of a serving router', () => {
  const LARGE = 'x'.repeat(16 * 1024 * 1024 + 1)

  test('are emptied while their parts run, above 16 MiB, so that they fill no disk and no memory', () => {
    vi.useFakeTimers()
    const logs = state.directory('log')
    const [worker, daemon] = [join(logs, 'worker.log'), join(logs, 'enclave.log')]
    writeFileSync(worker, LARGE)
    writeFileSync(daemon, 'a line\n')
    const end = tendLogs(state, [])
    vi.advanceTimersByTime(10_000)
    expect([worker, `${worker}.1`, daemon].map((path) => statSync(path).size)).toEqual([
      0,
      LARGE.length,
      7,
    ])
    end()
    appendFileSync(worker, LARGE)
    vi.advanceTimersByTime(60_000)
    expect(statSync(worker).size).toBe(LARGE.length)
  })

  test('may be removed with their directory: the router serves all the same', () => {
    vi.useFakeTimers()
    const logs = state.directory('log')
    const end = tendLogs(state, ['worker'])
    rmSync(logs, { recursive: true })
    expect(() => vi.advanceTimersByTime(10_000)).not.toThrow()
    expect(end).not.toThrow()
  })

  test('are shown on a console for strangers before they are emptied, and after that from their beginning', () => {
    vi.useFakeTimers()
    const worker = join(state.directory('log'), 'worker.log')
    const line = (count: number) => JSON.stringify({ event: 'request', count })
    writeFileSync(worker, `${line(1)}\n`)
    const end = tendLogs(state, ['worker'])
    vi.advanceTimersByTime(9_999)
    appendFileSync(worker, `${LARGE}\n${line(2)}\n`)
    vi.advanceTimersByTime(1)
    expect(statSync(worker).size).toBe(0)
    appendFileSync(worker, `${line(3)}\n`)
    end()
    const shown = vi.mocked(console.log).mock.calls.flat()
    expect(shown).toEqual([line(1), line(2), line(3)])
  })
})
