import { readFileSync } from 'node:fs'
import { describe, expect, it } from 'vitest'
import { estimatePromptTokens } from '../../../src/worker/provider/estimate.ts'
import { estimateTextTokens } from '../../../src/worker/stream/estimate-text.ts'
import { chatRequest } from '../../support/chat-fixtures.ts'

const PAGE = readFileSync(new URL('../../../docs/api.md', import.meta.url), 'utf8')
const SECTION = PAGE.split('### How tokens are counted')[1]?.split('\n#')[0]?.replaceAll('\n', ' ')

/** The number that the page gives at this place. */
function told(place: RegExp): number {
  const [, digits] = place.exec(SECTION ?? '') ?? []
  if (digits === undefined) throw new Error(`docs/api.md does not say ${place.source}`)
  return Number(digits.replace(',', ''))
}

const prompt = (content: unknown, more = {}) =>
  estimatePromptTokens(chatRequest({ model: 'm', messages: [{ role: 'user', content }], ...more }))

describe('what docs/api.md says of estimates is what the router counts', () => {
  const perMessage = told(/(\d+) for each message/)
  const perMedium = told(/([\d,]+) for each image or other medium/)
  const promptBytes = told(/prompt counts one token for every (\d+) bytes of text and tool/)
  const answerBytes = told(/answer one token for every (\d+) bytes/)

  it('for a message', () => expect(prompt(null)).toBe(perMessage))

  it('for the text of a prompt, and for tool definitions', () => {
    expect(prompt('a'.repeat(promptBytes * 100))).toBe(perMessage + 100)
    const tools = [{ type: 'function', function: { name: 'look' } }]
    const bytes = JSON.stringify(tools).length
    expect(prompt(null, { tools })).toBe(perMessage + Math.ceil(bytes / promptBytes))
  })

  it.each(['image_url', 'input_audio', 'file'])('for a medium: %s', (type) => {
    expect(prompt([{ type }])).toBe(perMessage + perMedium)
  })

  it('for an answer', () => {
    expect(estimateTextTokens(answerBytes * 100)).toBe(100)
    expect(estimateTextTokens(answerBytes * 100 + 1)).toBe(101)
  })
})
