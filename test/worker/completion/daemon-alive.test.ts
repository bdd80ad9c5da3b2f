import { expect, test } from 'vitest'
import { daemonAlive } from '../../../src/worker/completion/daemon-alive.ts'
import { LinkUnavailable, type Link } from '../../../src/worker/link/link.ts'
import { chatRoute } from '../../support/chat-fixtures.ts'

const DIRECT = { route: chatRoute() }
const PINNED = {
  route: { ...DIRECT.route, provider: { ...DIRECT.route.provider, adapter: 'tinfoil' as const } },
}

/** A link that notes how current a state it was asked for, and fails as it is told. */
function watched(failure?: Error) {
  const asked: string[] = []
  const ask = async (what: string) => {
    asked.push(what)
    if (failure) throw failure
  }
  // Only what is asked here.
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion
  const link = {
    state: () => ask('recent'),
    stateReadAfter: (time: number) => ask(`after ${time}`),
  } as unknown as Link
  return { asked, context: { link, now: () => 7 } }
}

test.each([
  ['a whole answer with a receipt', { stream: false, receipt: true, attempts: [DIRECT] }, 'recent'],
  ['a whole answer without', { stream: false, receipt: false, attempts: [DIRECT] }, 'after 7'],
  ['a direct stream', { stream: true, receipt: true, attempts: [DIRECT] }, 'after 7'],
  [
    'a stream that may be direct',
    { stream: true, receipt: true, attempts: [PINNED, DIRECT] },
    'after 7',
  ],
  ['a pinned stream', { stream: true, receipt: true, attempts: [PINNED, PINNED] }, 'recent'],
  [
    'a pinned stream without a receipt',
    { stream: true, receipt: false, attempts: [PINNED] },
    'recent',
  ],
] as const)('%s asks for one state of the daemon', async (_, terms, expected) => {
  const { asked, context } = watched()
  await daemonAlive(context, terms)
  expect(asked).toEqual([expected])
})

test('a daemon that does not answer refuses every one of them', async () => {
  const failure = new LinkUnavailable('the daemon does not answer', { failure: 'unreachable' })
  for (const stream of [false, true]) {
    for (const attempts of [[DIRECT], [PINNED]]) {
      const { context } = watched(failure)
      await expect(daemonAlive(context, { stream, receipt: true, attempts })).rejects.toBe(failure)
    }
  }
})
