import { once } from 'node:events'
import { existsSync, readFileSync } from 'node:fs'
import { request, type IncomingMessage } from 'node:http'
import { text } from 'node:stream/consumers'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { wav } from '../support/audio-samples.ts'
import { startStack, type Stack } from '../support/stack.ts'

const MIB = 1024 * 1024
const UPLOADS = 50

let stack: Stack

beforeAll(async () => {
  stack = await startStack()
})
afterAll(() => stack.stop())

/** A form with a sound file of 20 MiB; one copy of it serves all uploads. */
const FORM = Buffer.concat([
  Buffer.from('--b\r\nContent-Disposition: form-data; name="model"\r\n\r\nwhisper-large-v3\r\n'),
  Buffer.from('--b\r\nContent-Disposition: form-data; name="file"; filename="long.wav"\r\n\r\n'),
  wav(655).bytes,
  Buffer.from('\r\n--b--\r\n'),
])

/** Answers the status, and the code of a refusal. Sent below `fetch`, which would copy the body. */
async function upload(): Promise<string> {
  const call = request(`${stack.local.base_url}/v1/audio/transcriptions`, {
    method: 'POST',
    agent: false,
    headers: {
      authorization: `Bearer ${stack.local.api_key}`,
      'content-type': 'multipart/form-data; boundary=b',
      'content-length': FORM.length,
    },
  })
  call.end(FORM)
  const [answer]: IncomingMessage[] = await once(call, 'response')
  if (answer === undefined) throw new Error('there was no answer')
  const code = /"code":"(\w+)"/.exec(await text(answer))?.[1] ?? ''
  return `${answer.statusCode} ${code}`.trim()
}

/** The most memory that the worker's process ever had resident, in bytes. */
function workerPeakBytes(): number {
  const pid = /worker\s+up: port \d+, pid (\d+)/.exec(stack.output())?.[1]
  const peak = /VmHWM:\s+(\d+) kB/.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1]
  return Number(peak) * 1024
}

describe.skipIf(!existsSync('/proc/self/status'))('50 concurrent uploads of 20 MiB', () => {
  test(
    'are answered, or refused for want of room, while the worker stays under 1 GiB',
    { timeout: 120_000 },
    async () => {
      expect(FORM.length).toBeGreaterThan(19.9 * MIB)
      expect(await upload()).toBe('200')
      const before = workerPeakBytes()
      const answers = await Promise.all(Array.from({ length: UPLOADS }, upload))
      const clean = /^(200|429 rate_limit_exceeded|503 service_unavailable)$/
      expect(answers.filter((answer) => !clean.test(answer))).toEqual([])
      expect(answers).toContain('200')
      const peak = workerPeakBytes()
      console.log(
        `worker: ${Math.round(before / MIB)} MiB before, at most ${Math.round(peak / MIB)} MiB`,
      )
      expect(peak).toBeLessThan(1024 * MIB)
    },
  )
})
