import { mkdirSync, mkdtempSync, readFileSync, rmSync, truncateSync, writeFileSync } from 'node:fs'
import { createServer, type Server } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { DataDisk } from '../../../src/host/sealed/data-disk.ts'
import { HEAD_BYTES } from '../../../src/host/sealed/data-disk-header.ts'
import type { VolumeAnswer } from '../../../src/host/sealed/volume.ts'

const SECRET = 'ab'.repeat(32)
const OTHER = 'cd'.repeat(32)

let directory: string
let pid1: Server
/** What PID 1 was asked for. */
let asked: string[]
let answer: VolumeAnswer | 'nonsense'

const device = () => join(directory, 'disk')
const open = (secret = SECRET, position?: number) =>
  new DataDisk({ device: device(), volume: join(directory, 'volume') }).open(secret, position)

beforeEach(async () => {
  directory = mkdtempSync(join(tmpdir(), 'cmr-disk-'))
  asked = []
  answer = 'ok'
  pid1 = createServer((socket) => {
    socket.on('data', (line) => {
      asked.push(line.toString())
      socket.end(`${answer}\n`)
    })
  })
  await new Promise<void>((resolve) => {
    pid1.listen(join(directory, 'volume'), resolve)
  })
  writeFileSync(device(), '')
  truncateSync(device(), 2 * HEAD_BYTES)
})
afterEach(() => {
  pid1.close()
  rmSync(directory, { recursive: true })
})

const change = (at: number, byte: number) => {
  const bytes = readFileSync(device())
  bytes[at] = byte
  writeFileSync(device(), bytes)
}

describe('the data disk', () => {
  it('is formatted on first use, and opened with the same key after that', async () => {
    expect(await open()).toBeUndefined()
    expect(await open()).toBeUndefined()
    const [format = '', again = ''] = asked
    expect(format).toMatch(/^format [0-9a-f]{192}\n$/)
    expect(again).toBe(format.replace('format', 'open'))
    expect(format).not.toContain(SECRET)
  })

  it('has another key on each disk, whatever the secret', async () => {
    await open()
    truncateSync(device(), 0)
    truncateSync(device(), 2 * HEAD_BYTES)
    await open()
    expect(new Set(asked).size).toBe(2)
  })

  it('is refused with another secret, and stays as it is', async () => {
    await open()
    const before = readFileSync(device())
    expect(await open(OTHER)).toBe('other_key')
    expect(readFileSync(device()).equals(before)).toBe(true)
    expect(asked).toHaveLength(1)
  })

  it.each([
    ['its salt', 20],
    ['what tells a wrong key', 50],
    ['the checksum', 80],
    ['the rest of its head', 5000],
  ])('is refused as damaged when %s was changed', async (_part, at) => {
    await open()
    change(at, readFileSync(device())[at] === 1 ? 2 : 1)
    expect(await open()).toBe('damaged')
    expect(asked).toHaveLength(1)
  })

  it('is refused when it holds something else, which is not overwritten', async () => {
    change(0, 1)
    expect(await open()).toBe('not_ours')
    expect(asked).toEqual([])
  })

  it('is refused when it is not there, or shorter than its head', async () => {
    await open()
    truncateSync(device(), 4096)
    expect(await open()).toBe('damaged')
    rmSync(device())
    expect(await open()).toBe('missing')
  })

  it('is refused when it cannot be read, and is not taken for a blank one', async () => {
    await open()
    rmSync(device())
    // A read of a directory is an error, as is one of a failing disk.
    mkdirSync(device())
    expect(await open()).toBe('unreadable')
    expect(asked).toHaveLength(1)
  })

  it('is not formatted when the ledger was somewhere before', async () => {
    expect(await open(SECRET, 7)).toBe('blank')
    expect(asked).toEqual([])
  })

  it.each(['too_small', 'not_blank', 'damaged', 'unreadable', 'format_failed', 'missing'] as const)(
    'is not taken for formatted when PID 1 answers %s',
    async (problem) => {
      answer = problem
      expect(await open()).toBe(problem)
      answer = 'ok'
      expect(await open()).toBeUndefined()
      expect(asked.map((line) => line.split(' ')[0])).toEqual(['format', 'format'])
    },
  )

  it('keeps its key as long as it is open', async () => {
    const disk = new DataDisk({ device: device(), volume: join(directory, 'volume') })
    expect(await disk.open(SECRET, undefined)).toBeUndefined()
    expect(await disk.open(SECRET, 5)).toBeUndefined()
    expect(await disk.open(OTHER, undefined)).toBe('already_open')
    expect(asked).toHaveLength(1)
  })

  it('asks for 64 hex digits', async () => {
    expect(await open('weak')).toBe('malformed')
  })

  it('takes no answer that PID 1 does not give', async () => {
    answer = 'nonsense'
    await expect(open()).rejects.toThrow('PID 1 gave an unknown answer')
  })
})
