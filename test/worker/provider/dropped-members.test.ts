import { describe, expect, it } from 'vitest'
import { droppedMembersHeader } from '../../../src/worker/provider/dropped-members.ts'
import { chatRequest, chatRoute, chatText } from '../../support/chat-fixtures.ts'

const DEFAULT = chatRoute()
const WIDE = chatRoute({ forward: ['best_of', 'vendor'] })
const dropped = (members: string, routes = [DEFAULT], before: readonly string[] = []) => {
  const request = { chat: chatRequest(chatText(members)), dropped: before }
  return droppedMembersHeader(request, routes)['x-service-dropped-members']
}

describe('the header of dropped members', () => {
  it('is absent where every member was forwarded, checked or null', () => {
    expect(dropped('"top_p":1,"min_p":1,"reasoning":"low","best_of":null')).toBeUndefined()
  })

  it('names what the route leaves out, and every member that one of several leaves out', () => {
    const members = '"min_p":1,"best_of":2,"vendor":3'
    expect(dropped(members)).toBe('best_of, vendor')
    expect(dropped(members, [WIDE])).toBe('min_p')
    expect(dropped(members, [DEFAULT, WIDE])).toBe('min_p, best_of, vendor')
  })

  it('also names what the API format had dropped, each name once', () => {
    expect(
      dropped('"best_of":2', [DEFAULT], ['tools.web_search', 'best_of', 'tools.web_search']),
    ).toBe('tools.web_search, best_of')
  })

  it('does not name what an OCR route is always sent', () => {
    expect(dropped('"skip_special_tokens":false')).toBe('skip_special_tokens')
    expect(dropped('"skip_special_tokens":false', [chatRoute({ ocr: true })])).toBeUndefined()
  })

  it('is a header whatever the names are', () => {
    expect(dropped('"a\\r\\nb: c":1,"\\ud800":1,"世":1')).toBe(
      'a%0D%0Ab%3A%20c, %EF%BF%BD, %E4%B8%96',
    )
    expect(dropped(`"${'n'.repeat(1000)}":1`)).toBe('n'.repeat(64))
    const many = Array.from({ length: 40 }, (_, at) => `"m${at}":0`).join(',')
    expect(dropped(many)?.split(', ')).toHaveLength(33)
    expect(dropped(many)).toMatch(/, m31, \*$/)
  })
})
