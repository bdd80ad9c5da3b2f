import { execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { nodeProgram } from '../../../src/host/stack/node-program.ts'

/** Lets objects live for long enough that V8 makes the young generation larger; prints its size in MiB, and that of a thread's. */
const PROGRAM = `
const { getHeapSpaceStatistics } = require('node:v8')
const { isMainThread, parentPort, Worker } = require('node:worker_threads')
const living = []
for (let round = 0; round < 400; round++) {
  for (let index = 0; index < 5000; index++) living[index] = { index, text: 'x' + index, list: [round] }
}
const [young] = getHeapSpaceStatistics().filter(({ space_name }) => space_name === 'new_space')
const mib = young.space_size / 1048576
if (isMainThread) {
  new Worker(__filename).on('message', (ofThread) => console.log(JSON.stringify([mib, ofThread])))
} else parentPort.postMessage(mib)
`

let folder: string
let program: string

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'cmr-node-'))
  program = join(folder, 'program.cjs')
  writeFileSync(program, PROGRAM)
})
afterEach(() => rmSync(folder, { recursive: true, force: true }))

const youngMib = (file: string, args: readonly string[]): unknown =>
  JSON.parse(execFileSync(file, args, { encoding: 'utf8' }))

describe('a program of the router', () => {
  test('has a young generation of 16 MiB at most, and so have its threads', () => {
    const { file, args } = nodeProgram(program)
    const found = youngMib(file, args)
    expect(found).toEqual([expect.any(Number), expect.any(Number)])
    for (const mib of [found].flat()) expect(mib).toBeLessThanOrEqual(16)
  })

  test('opens no debugger for SIGUSR1, by which anybody on the machine could read its keys', async () => {
    writeFileSync(program, "setTimeout(() => console.log('lives'), 1_000); console.log('up')")
    const { file, args } = nodeProgram(program)
    const child = spawn(file, args, { stdio: ['ignore', 'pipe', 'pipe'] })
    let printed = ''
    for (const stream of [child.stdout, child.stderr]) {
      stream.on('data', (chunk: Buffer) => (printed += chunk.toString()))
    }
    await once(child.stdout, 'data')
    child.kill('SIGUSR1')
    await once(child, 'close')
    expect(printed).toBe('up\nlives\n')
  })

  test('would have a larger one without that', () => {
    const { file } = nodeProgram(program)
    const found = youngMib(file, [program])
    expect(Math.max(...[found].flat().map(Number))).toBeGreaterThan(16)
  })
})
