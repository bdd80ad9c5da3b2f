import { expect } from 'vitest'
import { OPTIONS, chunksOf } from './golden-streams.ts'

/** A short word that does not say that generation failed. */
export const FINISH_REASON = /^(?!(?:error|abort|insufficient_system_resource)$)[^]{1,64}$/i

/** What every stream of ours must look like, whatever the provider sent. Throws where one does not. */
export function checkShape(text: string, complete: boolean): void {
  const chunks = chunksOf(text)
  const last = complete ? chunks.pop() : undefined
  const calls = new Map<number, object>()
  chunks.forEach((chunk, position) => {
    const choice = onlyChoice(chunk)
    expect(Object.keys(chunk)).toEqual(['id', 'object', 'created', 'model', 'choices'])
    expect(choice['finish_reason']).toBeNull()
    checkDelta(choice['delta'], position === 0, calls)
  })
  expect(text.endsWith('data: [DONE]\n\n')).toBe(complete)
  if (last === undefined) return
  const { delta, finish_reason: reason } = onlyChoice(last)
  expect(delta).toEqual({})
  expect(reason).toMatch(FINISH_REASON)
  expect(last).toHaveProperty('service')
  // The role must have gone out before, on a chunk of its own.
  expect(chunks.length).toBeGreaterThan(0)
}

function onlyChoice(chunk: Record<string, unknown>): Record<string, unknown> {
  const { id, created, model } = OPTIONS
  expect(chunk).toMatchObject({ id, object: 'chat.completion.chunk', created, model })
  expect(chunk['choices']).toHaveLength(1)
  const [choice] = asArray(chunk['choices'])
  expect(choice?.['index']).toBe(0)
  return choice ?? {}
}

function checkDelta(delta: unknown, first: boolean, calls: Map<number, object>): void {
  expect(delta).toBeTypeOf('object')
  const { role, tool_calls: fragments, ...texts } = asArray([delta])[0] ?? {}
  expect(role).toBe(first ? 'assistant' : undefined)
  for (const [name, text] of Object.entries(texts)) {
    expect(['content', 'reasoning', 'refusal']).toContain(name)
    expect(text).toBeTypeOf('string')
  }
  for (const fragment of asArray(fragments ?? [])) checkFragment(fragment, calls)
}

function checkFragment(fragment: Record<string, unknown>, calls: Map<number, object>): void {
  const { index, id, type, function: called } = fragment
  expect(Number.isInteger(index)).toBe(true)
  const begins = !calls.has(Number(index))
  calls.set(Number(index), fragment)
  expect([typeof id, type]).toEqual(begins ? ['string', 'function'] : ['undefined', undefined])
  expect(called).toHaveProperty('arguments')
  for (const member of Object.values(asArray([called])[0] ?? {}))
    expect(member).toBeTypeOf('string')
}

function asArray(value: unknown): Record<string, unknown>[] {
  expect(Array.isArray(value)).toBe(true)
  return Array.isArray(value) ? value : []
}
