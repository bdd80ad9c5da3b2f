import { expect, test } from 'vitest'
import { askDaemon } from '../../../src/worker/completion/ask-daemon.ts'
import { LinkUnavailable, type Link } from '../../../src/worker/link/link.ts'
import { chatRoute } from '../../support/chat-fixtures.ts'

const DIRECT = { route: chatRoute() }
const PINNED = {
  route: { ...DIRECT.route, provider: { ...DIRECT.route.provider, adapter: 'tinfoil' as const } },
}

/** A link that notes how current a state it was asked for, and answers as it is told. */
function linkThat(recent: () => Promise<void>, current: () => Promise<void>) {
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
  return { asked, context: { link, now: () => 7 } }
}

const answers = async () => {}
const failure = new LinkUnavailable('the daemon does not answer', { failure: 'unreachable' })
const refuses = () => Promise.reject(failure)

test.each([
  ['a whole answer with a receipt', [DIRECT], { isStream: false, hasReceipt: true }, ['recent']],
  ['a whole answer without', [DIRECT], { isStream: false, hasReceipt: false }, ['after 7']],
  ['a direct stream', [DIRECT], { isStream: true, hasReceipt: true }, ['recent', 'after 7']],
  ['a pinned stream', [PINNED], { isStream: true, hasReceipt: true }, ['after 7']],
  [
    'a stream that may come through the daemon',
    [DIRECT, PINNED],
    { isStream: true, hasReceipt: false },
    ['after 7'],
  ],
] as const)('%s asks the daemon for no more than it needs', async (_, attempts, delivery, asks) => {
  const { asked, context } = linkThat(answers, answers)
  await askDaemon(context, { attempts }, delivery)
  expect(asked).toEqual(asks)
})

test('only a direct stream goes on before a current state is there', async () => {
  const never = () => new Promise<void>(() => {})
  const { context } = linkThat(answers, never)
  const direct = await askDaemon(
    context,
    { attempts: [DIRECT] },
    { isStream: true, hasReceipt: true },
  )
  expect(direct.beside).toBeInstanceOf(Promise)
  const others = [
    askDaemon(context, { attempts: [PINNED] }, { isStream: true, hasReceipt: true }),
    askDaemon(context, { attempts: [DIRECT] }, { isStream: false, hasReceipt: false }),
  ]
  const first = await Promise.race([...others, Promise.resolve('none of them')])
  expect(first).toBe('none of them')
})

test('a daemon that is known not to answer refuses a direct stream at once', async () => {
  const { asked, context } = linkThat(refuses, refuses)
  const terms = { isStream: true, hasReceipt: true }
  await expect(askDaemon(context, { attempts: [DIRECT] }, terms)).rejects.toBe(failure)
  expect(asked).toEqual(['recent'])
})

test('one that has just stopped answering refuses it as soon as that is known', async () => {
  const { context } = linkThat(answers, refuses)
  const terms = { isStream: true, hasReceipt: true }
  const { beside } = await askDaemon(context, { attempts: [DIRECT] }, terms)
  await expect(beside).rejects.toBe(failure)
})
