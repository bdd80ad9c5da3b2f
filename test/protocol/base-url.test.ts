import { expect, it } from 'vitest'
import { bareBaseUrl } from '../../src/protocol/base-url.ts'
import { isPlainValue } from '../../src/protocol/link-messages.ts'

it.each([
  ['https://nova.example', 'https://nova.example'],
  ['https://nova.example/v1//', 'https://nova.example/v1'],
  ['HTTPS://Nova.Example:443/V1/', 'https://nova.example/V1'],
  ['http://[::1]:8000/v1', 'http://[::1]:8000/v1'],
  ['https://bücher.example/größe', 'https://xn--bcher-kva.example/gr%C3%B6%C3%9Fe'],
  ['https://例え.example/v1', 'https://xn--r8jz45g.example/v1'],
  ['https://nova.example/v1/?', 'https://nova.example/v1'],
  ['https://nova.example/v1/#', 'https://nova.example/v1'],
])('%s is %s, which a header can carry', (given, bare) => {
  expect(bareBaseUrl(given)).toBe(bare)
  expect(isPlainValue(bare)).toBe(true)
})
