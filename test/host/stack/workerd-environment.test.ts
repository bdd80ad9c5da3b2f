import { expect, test } from 'vitest'
import { workerdEnvironment } from '../../../src/host/stack/workerd-environment.ts'

test('workerd is started with restartable sequences free for its allocator', () => {
  for (const given of [undefined, '']) {
    expect(workerdEnvironment(given)).toEqual({ GLIBC_TUNABLES: 'glibc.pthread.rseq=0' })
  }
})

test('what the operator has set comes last, so that it counts', () => {
  expect(workerdEnvironment('glibc.malloc.arena_max=1:glibc.pthread.rseq=1')).toEqual({
    GLIBC_TUNABLES: 'glibc.pthread.rseq=0:glibc.malloc.arena_max=1:glibc.pthread.rseq=1',
  })
})
