import https from 'node:https'
import { buffer } from 'node:stream/consumers'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { drawPicture } from '../../../src/browser/chain/picture.ts'
import { RouterUnavailable, type RouterReader } from '../../../src/browser/parts/router-reader.ts'
import {
  judgeRouter,
  type Requirements,
  type RouterReport,
} from '../../../src/browser/verifier/judge-router.ts'
import { memoryState } from '../../../src/client/memory-state.ts'
import { copyBytes } from '../../../src/protocol/bytes.ts'
import { startFakeRouter, type FakeRouter } from '../../support/fake-router.ts'
import { NOW, revocationList } from '../../support/synthetic-snp.ts'
import { makeWorld, type World } from '../../support/synthetic-world.ts'
import { HPKE_TAMPERINGS, TAMPERINGS } from '../../support/tamperings.ts'

let world: World
let host: FakeRouter

beforeAll(async () => {
  world = await makeWorld()
  host = await startFakeRouter(world)
})
afterAll(() => host.close())

/** What a browser does that was told to accept the certificate. */
function readerOf({ baseURL }: Pick<FakeRouter, 'baseURL'>): RouterReader {
  const base = new URL(baseURL)
  const get = (path: string) =>
    new Promise<Awaited<ReturnType<RouterReader['get']>>>((resolve, reject) => {
      const request = https.get(new URL(path, base), { rejectUnauthorized: false, agent: false })
      request.on('error', reject)
      request.on('response', (response) => {
        buffer(response).then(
          (body) => resolve({ status: response.statusCode ?? 0, body: copyBytes(body) }),
          reject,
        )
      })
    })
  return {
    base,
    get,
    fetch: async (input) => {
      const { status, body } = await get(
        new URL(input instanceof Request ? input.url : input).pathname,
      )
      return new Response(body, { status })
    },
  }
}

async function judge(demands: Partial<Requirements> = {}): Promise<RouterReport> {
  return judgeRouter(
    readerOf(host),
    {
      rootJwk: world.root.jwk,
      environments: ['production'],
      allowSimulated: false,
      requireCrl: false,
      crl: undefined,
      logPolicy: undefined,
      ...demands,
    },
    {
      now: () => NOW,
      nonce: () => 'a1'.repeat(32),
      state: memoryState(),
      anchors: [{ product: 'genoa', spkiSha256: world.chain.arkSpkiSha256 }],
    },
  )
}

const redBoxes = (report: RouterReport) =>
  drawPicture('router', report)
    .filter(({ state }) => state === 'failed')
    .map(({ id }) => id)

/** The one box that each tampering must turn red; a page sees nothing of its connection's key. */
const RED: readonly (readonly [tampering: RegExp, box: string | undefined])[] = [
  [/^the report: /, 'report'],
  [/^the chain: /, 'chip'],
  [/^the bundle: /, 'bundle'],
  [/^the manifest$/, 'manifest'],
  [/^the identity tag$/, 'identity'],
  [/^the TLS key: the one in the envelope/, 'identity'],
  [/^the TLS key: the one on the connection/, undefined],
  [/^the receipt key$/, 'binding'],
  [/^the HPKE key/, 'binding'],
  [/^the nonce: an answer to another question$/, 'nonce'],
  [/^the nonce: the right one, after the report$/, 'binding'],
  [/^the revocation list$/, 'revocation'],
  [/^the text of the envelope$/, 'evidence'],
]

describe('the verdict on a router', () => {
  test('is valid for an honest one, and every box with evidence passes', async () => {
    host.misbehave({})
    const report = await judge({ crl: await revocationList([]) })
    expect(report.summary).toMatch(/^VALID: /)
    const states = drawPicture('router', report).map(({ id, state }) => `${id} ${state}`)
    expect(states.filter((one) => !one.endsWith(' holds'))).toEqual(['logged open'])
  })

  test.each([...TAMPERINGS, ...HPKE_TAMPERINGS])(
    'turns exactly one box red: $name',
    async ({ name, misdeeds }) => {
      host.misbehave(await misdeeds(host))
      const report = await judge()
      const box = RED.find(([pattern]) => pattern.test(name))
      expect([name, box]).toEqual([name, expect.anything()])
      const expected = box?.[1] === undefined ? [] : [box[1]]
      expect(redBoxes(report)).toEqual(expected)
      expect(report.ok).toBe(expected.length === 0)
      expect(report.summary).toMatch(expected.length > 0 ? /^NOT VALID/ : /^VALID: /)
    },
  )

  test('turns the bundle red under another release root, and still reports what the hardware says', async () => {
    host.misbehave({})
    const report = await judge({ rootJwk: world.manifestKey.jwk })
    expect(redBoxes(report)).toEqual(['bundle'])
    const states = new Map(drawPicture('router', report).map(({ id, state }) => [id, state]))
    expect([states.get('chip'), states.get('report'), states.get('allowed')]).toEqual([
      'holds',
      'holds',
      'moot',
    ])
  })

  test('is none where the router gives no evidence', async () => {
    const reader = readerOf(host)
    const silent = { ...reader, get: async () => ({ status: 503, body: new Uint8Array() }) }
    const judged = judgeRouter(
      silent,
      {
        rootJwk: world.root.jwk,
        environments: ['production'],
        allowSimulated: false,
        requireCrl: false,
        crl: undefined,
        logPolicy: undefined,
      },
      { now: () => NOW, nonce: () => 'a1'.repeat(32), state: memoryState() },
    )
    await expect(judged).rejects.toThrow(RouterUnavailable)
    await expect(judged).rejects.toThrow('no evidence at this moment (503)')
  })
})
