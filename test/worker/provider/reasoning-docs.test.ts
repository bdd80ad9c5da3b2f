import { readFileSync } from 'node:fs'
import { expect, it } from 'vitest'
import { fromUtf8 } from '../../../src/protocol/bytes.ts'
import { buildChatBody } from '../../../src/worker/provider/chat-body.ts'
import { chatRequest, chatRoute } from '../../support/chat-fixtures.ts'

const PAGE = readFileSync(new URL('../../../docs/api.md', import.meta.url), 'utf8')

/** docs/api.md on earlier reasoning, with the members that it names. */
const SENTENCE =
  /Earlier reasoning in assistant messages \(`(\w+)`, `(\w+)`\) is forwarded under the name in the route's `history_field`, and removed if the route has none\./

function sent(member: string, named: { history_field?: string } = {}): unknown {
  const messages = [{ role: 'assistant', content: 'Yes.', [member]: 'Thought.' }]
  const request = chatRequest({ model: 'glm-5', messages })
  const route = chatRoute({ reasoning: { default_effort: 'off', efforts: {}, ...named } })
  return JSON.parse(fromUtf8(buildChatBody(request, route, undefined, undefined)))
}

it('earlier reasoning is handled as docs/api.md says', () => {
  const [, ...members] = SENTENCE.exec(PAGE.replaceAll('\n', ' ')) ?? []
  expect(members).toHaveLength(2)
  for (const member of members) {
    expect(sent(member)).toHaveProperty('messages', [{ role: 'assistant', content: 'Yes.' }])
    expect(sent(member, { history_field: 'thoughts' })).toHaveProperty('messages', [
      { role: 'assistant', content: 'Yes.', thoughts: 'Thought.' },
    ])
  }
})
