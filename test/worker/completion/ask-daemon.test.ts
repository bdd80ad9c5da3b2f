import { expect, test } from 'vitest'
import { askDaemon } from '../../../src/worker/completion/ask-daemon.ts'
import { LinkUnavailable, type Link } from '../../../src/worker/link/link.ts'
import { chatRoute } from '../../support/chat-fixtures.ts'

const DIRECT = { route: chatRoute() }
const PINNED = {
  route: { ...DIRECT.route, provider: { ...DIRECT.route.provider, isCarried: true } },
}

/** A link that notes how current a state it was asked for, and answers as it is told. */
function linkThat(recent: () => Promise<void>, current: () => Promise<void>, open = 1) {
  const asked: string[] = []
  // Only what is asked here.
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion
  const link = {
    state: () => {
      asked.push('recent')
      return recent()
    },
    stateReadAfter: (time: number) => {
      asked.push(`after ${time}`)
      return current()
    },
  } as unknown as Link
  return { asked, context: { link, now: () => 7, openRequests: () => open } }
}

const answers = async () => {}
const failure = new LinkUnavailable('the daemon does not answer', { failure: 'unreachable' })
const refuses = () => Promise.reject(failure)

test.each([
  ['a whole answer with a receipt', [DIRECT], { isStream: false, hasReceipt: true }, ['recent']],
  ['a whole answer without', [DIRECT], { isStream: false, hasReceipt: false }, ['after 7']],
  ['a direct stream', [DIRECT], { isStream: true, hasReceipt: true }, ['recent', 'after 7']],
  ['a pinned stream', [PINNED, PINNED], { isStream: true, hasReceipt: true }, ['recent']],
  [
    'a stream that may be direct',
    [PINNED, DIRECT],
    { isStream: true, hasReceipt: true },
    ['recent', 'after 7'],
  ],
] as const)('%s asks the daemon for no more than it needs', async (_, attempts, delivery, asks) => {
  const { asked, context } = linkThat(answers, answers)
  await askDaemon(context, { attempts }, delivery)
  expect(asked).toEqual(asks)
})

test.each([
  ['direct', [DIRECT], 17, ['recent', 'after 7']],
  ['pinned', [PINNED], 16, ['recent']],
  ['pinned', [PINNED], 17, ['after 7']],
  ['perhaps pinned', [DIRECT, PINNED], 17, ['after 7']],
] as const)(
  'a %s stream (%o) with %d open requests asks for %o',
  async (_, attempts, open, asks) => {
    const { asked, context } = linkThat(answers, answers, open)
    await askDaemon(context, { attempts }, { isStream: true, hasReceipt: true })
    expect(asked).toEqual(asks)
  },
)

test.each([
  ['a whole answer without a receipt', DIRECT, { isStream: false, hasReceipt: false }],
  ['a pinned stream among many', PINNED, { isStream: true, hasReceipt: true }],
] as const)(
  '%s waits for a current state before its provider is asked',
  async (_, attempt, delivery) => {
    const { promise, resolve } = Promise.withResolvers<void>()
    const { context } = linkThat(answers, () => promise, 17)
    let isLetIn = false
    const asking = askDaemon(context, { attempts: [attempt] }, delivery).then(({ daemonAlive }) => {
      isLetIn = true
      return daemonAlive
    })
    await new Promise((done) => setImmediate(done))
    expect(isLetIn).toBe(false)
    resolve()
    expect(await asking).toBeUndefined()
  },
)

test('a direct stream asks its provider before a current state is there', async () => {
  const { context } = linkThat(answers, () => new Promise<void>(() => {}))
  const terms = { isStream: true, hasReceipt: true }
  const { daemonAlive } = await askDaemon(context, { attempts: [DIRECT] }, terms)
  expect(daemonAlive).toBeInstanceOf(Promise)
})

test('a daemon that is known not to answer refuses a direct stream at once', async () => {
  const { asked, context } = linkThat(refuses, refuses)
  const terms = { isStream: true, hasReceipt: true }
  await expect(askDaemon(context, { attempts: [DIRECT] }, terms)).rejects.toBe(failure)
  expect(asked).toEqual(['recent'])
})

test('a daemon that has just stopped answering refuses a direct stream as soon as that is known', async () => {
  const { context } = linkThat(answers, refuses)
  const terms = { isStream: true, hasReceipt: true }
  const { daemonAlive } = await askDaemon(context, { attempts: [DIRECT] }, terms)
  await expect(daemonAlive).rejects.toBe(failure)
})
