import { describe, expect, test } from 'vitest'
import { fromUtf8 } from '../../../src/protocol/bytes.ts'
import { DEFAULT_FORWARD, OWN_CHAT_MEMBERS } from '../../../src/protocol/forwarded-members.ts'
import { CHAT_MEMBERS } from '../../../src/worker/completion/chat-members.ts'
import { checkReasoningMembers } from '../../../src/worker/completion/reasoning-members.ts'
import { CHECKED_MEMBERS } from '../../../src/worker/completion/request-members.ts'
import { buildChatBody } from '../../../src/worker/provider/chat-body.ts'
import { PASSED_MEMBERS } from '../../../src/worker/provider/chat-request.ts'
import { droppedMembersHeader } from '../../../src/worker/provider/dropped-members.ts'
import { chatRequest, chatRoute, chatText } from '../../support/chat-fixtures.ts'
import { refusalOf } from '../../support/refusal.ts'

/** What the table of chat completions says becomes of every member. */

const named = (becomes: string) =>
  CHAT_MEMBERS.filter((rule) => rule.becomes === becomes).map(({ member }) => member)

/** What a route is sent of a member, and what the header says was dropped. */
function fate(member: string, forward: string[] = [...DEFAULT_FORWARD]) {
  const chat = chatRequest(chatText(`"${member}":"x"`))
  const route = chatRoute({ forward })
  const sent = JSON.parse(fromUtf8(buildChatBody(chat, route, undefined, undefined)))
  return { sent: sent[member], ...droppedMembersHeader({ chat, dropped: [] }, [route]) }
}

describe('the members of chat completions', () => {
  test.each(named('refused'))('%s is refused, by the words of the table', (member) => {
    const { note } = CHAT_MEMBERS.find((rule) => rule.member === member) ?? {}
    const act = () => checkReasoningMembers(chatRequest(chatText(`"${member}":"x"`)))
    const message = `"${member}": ${note}.`
    expect(refusalOf(act)).toEqual({ code: 'invalid_request_error', message, param: member })
  })

  test.each(PASSED_MEMBERS)('%s is handed on, and never named as dropped', (member) => {
    expect(fate(member, [])).toEqual({ sent: 'x' })
  })

  test.each(named('by route'))('%s is handed on or dropped, as the route says', (member) => {
    expect(fate(member)).toEqual({ sent: 'x' })
    expect(fate(member, [])).toEqual({ 'x-service-dropped-members': member })
  })

  test('one that the table does not have is dropped, unless the route forwards it', () => {
    expect(fate('verbosity')).toEqual({ 'x-service-dropped-members': 'verbosity' })
    expect(fate('verbosity', ['verbosity'])).toEqual({ sent: 'x' })
  })

  test('are all in the table, and none is in it twice', () => {
    const all = CHAT_MEMBERS.map(({ member }) => member)
    expect(new Set(all).size).toBe(all.length)
    expect(all).toEqual(expect.arrayContaining([...CHECKED_MEMBERS, ...PASSED_MEMBERS]))
    const own = new Set([...PASSED_MEMBERS, ...DEFAULT_FORWARD] as string[])
    expect(all.filter((member) => !own.has(member)).toSorted()).toEqual(
      [...OWN_CHAT_MEMBERS].toSorted(),
    )
  })
})
