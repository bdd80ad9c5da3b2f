import { describe, expect, test } from 'vitest'
import { Conversation } from '../../../src/worker/completion/conversation.ts'

const user = { role: 'user', content: 'hi' }

/** The messages of a conversation that a user begins. */
function messagesOf(build: (conversation: Conversation) => void): unknown {
  const conversation = new Conversation()
  conversation.user([{ type: 'text', text: 'hi' }])
  build(conversation)
  return conversation.messages()
}

const called = (id: string) => ({ id, name: 'f', arguments: '{}' })
const call = (id: string) => ({ id, type: 'function', function: { name: 'f', arguments: '{}' } })
const result = (id: string) => ({ role: 'tool', tool_call_id: id, content: '' })

describe('earlier reasoning, where texts are messages of their own', () => {
  test('reasoning between two texts belongs to the second', () => {
    const messages = messagesOf((conversation) => {
      conversation.text('one')
      conversation.reasoning('Hm')
      conversation.reasoning('So')
      conversation.text('two')
    })
    expect(messages).toEqual([
      user,
      { role: 'assistant', content: 'one' },
      { role: 'assistant', content: 'two', reasoning: 'Hm\nSo' },
    ])
  })

  test('reasoning between a call and a text belongs to the text', () => {
    const messages = messagesOf((conversation) => {
      conversation.reasoning('a')
      conversation.call(called('1'))
      conversation.reasoning('b')
      conversation.text('two')
      conversation.result('1', [], 'input')
    })
    expect(messages).toEqual([
      user,
      { role: 'assistant', content: null, reasoning: 'a', tool_calls: [call('1')] },
      result('1'),
      { role: 'assistant', content: 'two', reasoning: 'b' },
    ])
  })

  test('reasoning that no text follows belongs to the text and the calls around it', () => {
    const messages = messagesOf((conversation) => {
      conversation.text('one')
      conversation.reasoning('a')
      conversation.call(called('1'))
      conversation.reasoning('b')
      conversation.call(called('2'))
      for (const id of ['1', '2']) conversation.result(id, [], 'input')
      conversation.text('two')
      conversation.reasoning('c')
    })
    const tool_calls = [call('1'), call('2')]
    expect(messages).toEqual([
      user,
      { role: 'assistant', content: 'one', reasoning: 'a\nb', tool_calls },
      result('1'),
      result('2'),
      { role: 'assistant', content: 'two', reasoning: 'c' },
    ])
  })
})

test('where texts of one message are added up, all of its reasoning is one', () => {
  const messages = messagesOf((conversation) => {
    conversation.addText('one ')
    conversation.reasoning('a')
    conversation.addText('two')
    conversation.reasoning('b')
  })
  expect(messages).toEqual([user, { role: 'assistant', content: 'one two', reasoning: 'a\nb' }])
})
