import { expect, it } from 'vitest'
import type { ChunkStub } from '../../../src/worker/chunks/chunk-switch.ts'
import { openPipeEnd } from '../../../src/worker/chunks/open-pipe-end.ts'
import type { ObjectNamespace } from '../../../src/worker/storage/object-call.ts'

it('the end of a pipe is that of the one object, under the name that is asked for, once the object has the other end', async () => {
  const { promise: opened, resolve: open } = Promise.withResolvers<void>()
  const readable = new ReadableStream<Uint8Array>()
  const asked: unknown[] = []
  const connect: ChunkStub['connect'] = (name, options) => {
    asked.push(name, options)
    return { opened, readable }
  }
  const chunks: ObjectNamespace<Pick<ChunkStub, 'connect'>> = {
    idFromName: (name) => {
      asked.push(name)
      // Nothing but the namespace looks at an id.
      // oxlint-disable-next-line typescript/no-unsafe-type-assertion
      return {} as ReturnType<typeof chunks.idFromName>
    },
    get: () => ({ connect }),
  }
  let isThere = false
  const end = openPipeEnd('http://pipes/id-1.2', chunks).finally(() => (isThere = true))
  await new Promise(setImmediate)
  expect(isThere).toBe(false)
  open()
  expect(await end).toBe(readable)
  expect(asked).toEqual(['chunks', 'id-1.2:1', { allowHalfOpen: true }])
})

it('there is no end of a pipe where there is no object', async () => {
  await expect(openPipeEnd('http://pipes/id-1.2', undefined)).rejects.toThrow(
    'internal error: no object to get the other end',
  )
})
