import { mkdtempSync, appendFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { consoleLine } from '../../../src/host/serve/console-line.ts'
import { LogFollower } from '../../../src/host/serve/log-follower.ts'

const at = '2026-01-01T00:00:00.000Z'

describe('a line on a console that strangers read', () => {
  it('is a known event with its known members', () => {
    const line = JSON.stringify({ at, event: 'request', endpoint: 'chat', status: 200 })
    expect(consoleLine(line)).toBe(line)
  })

  it('leaves out members that are not on the list, have another form, or count tokens', () => {
    const said = consoleLine(
      JSON.stringify({
        at,
        event: 'request',
        prompt: 'a prompt',
        status: 'a prompt',
        code: 'a prompt of a user',
        route: `quick\nx`,
        reason: 'ünlike any of ours',
        failover: 'yes',
        frames: ['at x', 'a\nprompt'],
        prompt_tokens: 5,
        cost_nano: '7',
        completion_tokens: 6,
      }),
    )
    expect(said).toBe(JSON.stringify({ at, event: 'request' }))
  })

  it.each([
    '',
    'Confidential Model Router is up',
    '[]',
    'null',
    '{"event":"toString"}',
    '{"event":1}',
  ])('is nothing where the event is unknown: %s', (text) => {
    expect(consoleLine(text)).toBeUndefined()
  })
})

describe('the follower of a log', () => {
  it('reads each whole line once, in a file that grows, is cut, or is replaced', () => {
    const directory = mkdtempSync(join(tmpdir(), 'cmr-log-'))
    try {
      const path = join(directory, 'a.log')
      const lines: string[] = []
      const follower = new LogFollower(path, (line) => lines.push(line))
      follower.look()
      writeFileSync(path, 'one\ntw')
      follower.look()
      appendFileSync(path, 'ö\n')
      follower.look()
      expect(lines).toEqual(['one', 'twö'])
      renameSync(path, `${path}.1`)
      writeFileSync(path, 'three\n')
      follower.look()
      follower.look()
      expect(lines).toEqual(['one', 'twö', 'three'])
    } finally {
      rmSync(directory, { recursive: true })
    }
  })
})
