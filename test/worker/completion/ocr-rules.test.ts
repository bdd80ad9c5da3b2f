import { describe, expect, it } from 'vitest'
import { checkOcrRequest } from '../../../src/worker/completion/ocr-rules.ts'
import { chatRequest } from '../../support/chat-fixtures.ts'
import { refusalOf } from '../../support/refusal.ts'

const PNG = 'data:image/png;base64,iVBORw0KGgoAAAAN'
const image = (url: unknown = PNG) => ({ type: 'image_url', image_url: { url } })
const text = (words: unknown = 'Free OCR.') => ({ type: 'text', text: words })
const user = (content: unknown) => [{ role: 'user', content }]

function check(messages: unknown, members: object = {}): void {
  checkOcrRequest(chatRequest({ model: 'ocr', messages, ...members }))
}

const refused = (messages: unknown, members: object = {}) =>
  refusalOf(() => check(messages, members))

const invalid = (message: string, param = 'messages') => ({
  code: 'invalid_request_error',
  message,
  param,
})

describe('checkOcrRequest', () => {
  it.each([
    ['both prompts', user([image(), text('<|grounding|>Convert the document to markdown.')])],
    ['the parts in either order', user([text(), image()])],
    [
      'a level of detail',
      user([{ type: 'image_url', image_url: { url: PNG, detail: 'high' } }, text()]),
    ],
    ['plain text, which is answered without an image', user('What is this?')],
  ])('takes %s', (_, messages) => {
    expect(() => check(messages)).not.toThrow()
  })

  it('takes what is sent anyway and what OCR has no rule for', () => {
    const members = { temperature: 0, skip_special_tokens: false, max_tokens: 900, reasoning: null }
    expect(() => check(user([image(), text()]), members)).not.toThrow()
  })

  it.each([
    ['reasoning', 'low'],
    ['reasoning', 'off'],
    ['reasoning', { effort: 'low' }],
    ['reasoning_effort', 'none'],
    ['chat_template_kwargs', {}],
  ])('refuses %s: %j', (param, value) => {
    expect(refused(user([image(), text()]), { [param]: value })).toEqual({
      code: 'unsupported_reasoning',
      message: 'OCR models have no reasoning controls.',
      param,
    })
  })

  it.each([
    ['reasoning', user([image('https://a/b.png'), text()]), { reasoning: 'low' }],
    ['a temperature', user([image('http://a'), text()]), { temperature: 1 }],
    ['another prompt', user([image('ftp://a'), text('Read this')]), {}],
    ['a second image', user([image(), image('//a'), text()]), {}],
    ['a system prompt', [{ role: 'system', content: 's' }, ...user([image('a.png')])], {}],
    ['an image that is a string', user([{ type: 'image_url', image_url: 'https://a' }]), {}],
  ])('says that an image is remote before it complains about %s', (_, messages, members) => {
    expect(refused(messages, members)).toEqual({
      code: 'unsupported_image_url',
      message: 'OCR models take images as base64 data URLs only; remote URLs are not fetched.',
      param: 'image_url.url',
    })
  })

  it.each([
    ['temperature', 0.1, 'OCR models run at "temperature" 0.'],
    ['temperature', 1, 'OCR models run at "temperature" 0.'],
    ['skip_special_tokens', true, 'OCR models need "skip_special_tokens" to be false.'],
    ['skip_special_tokens', 'false', 'OCR models need "skip_special_tokens" to be false.'],
    ['skip_special_tokens', 0, 'OCR models need "skip_special_tokens" to be false.'],
  ])('refuses %s: %j', (param, value, message) => {
    expect(refused(user([image(), text()]), { [param]: value })).toEqual(invalid(message, param))
  })

  const ONE_MESSAGE = 'OCR models take exactly one message and no system prompt.'
  const ONE_USER_MESSAGE = 'OCR models take one user message of an image and a text part.'
  const ONE_OF_EACH = 'An OCR message holds exactly one image and one text part.'
  it.each([
    [
      'a system prompt',
      [{ role: 'system', content: 'Hi' }, ...user([image(), text()])],
      ONE_MESSAGE,
    ],
    [
      'a system prompt before plain text',
      [{ role: 'system', content: 'Hi' }, ...user('Hi')],
      ONE_MESSAGE,
    ],
    ['two user messages', [...user('a'), ...user([image(), text()])], ONE_MESSAGE],
    ['another role', [{ role: 'assistant', content: [image(), text()] }], ONE_USER_MESSAGE],
    ['no content', user(null), ONE_USER_MESSAGE],
    ['another kind of part', user([image(), text(), { type: 'input_audio' }]), ONE_USER_MESSAGE],
    ['a part that is no object', user(['Free OCR.', image()]), ONE_USER_MESSAGE],
    [
      'an image URL outside its object',
      user([{ type: 'image_url', image_url: PNG }, text()]),
      ONE_USER_MESSAGE,
    ],
    ['a URL that is no string', user([image(null), text()]), ONE_USER_MESSAGE],
    ['an empty content', user([]), ONE_OF_EACH],
    ['no image', user([text()]), ONE_OF_EACH],
    ['no text', user([image()]), ONE_OF_EACH],
    ['two images', user([image(), image(), text()]), ONE_OF_EACH],
    ['two texts', user([image(), text(), text()]), ONE_OF_EACH],
  ])('refuses %s', (_, messages, message) => {
    expect(refused(messages)).toEqual(invalid(message))
  })

  it.each([
    'Free OCR',
    'free ocr.',
    ' Free OCR.',
    'Free OCR. ',
    'Convert the document to markdown.',
    '',
  ])('refuses the prompt "%s"', (words) => {
    expect(refused(user([image(), text(words)]))).toEqual(
      invalid(
        'The text part of an OCR message must be exactly "Free OCR." or ' +
          '"<|grounding|>Convert the document to markdown.".',
      ),
    )
  })

  it('looks at the image too', () => {
    expect(refused(user([image('https://example.com/a.png'), text()]))).toEqual({
      code: 'unsupported_image_url',
      message: 'OCR models take images as base64 data URLs only; remote URLs are not fetched.',
      param: 'image_url.url',
    })
  })
})
