import { expect, it } from 'vitest'
import { UnattestedProviders } from '../../../src/enclave/proofs/unattested-providers.ts'

it('finds a provider by name and address, without trailing slashes, after it is configured no more', () => {
  const providers = new UnattestedProviders()
  providers.add('nova', { base_url: 'https://old.example/v1//' }, 'local')
  providers.add('nova', { base_url: 'https://new.example/v1' }, 'local')
  const known = { provider: 'nova', publicOnly: false, evidence: null }
  const [old, now] = ['https://old.example/v1', 'https://new.example/v1']
  expect(providers.find('nova', old)).toEqual({ ...known, baseUrl: old })
  expect(providers.find('nova', now)).toEqual({ ...known, baseUrl: now })
  expect(providers.find('nova', 'https://other.example/v1')).toBeUndefined()
  expect(providers.find('vega', now)).toBeUndefined()
  expect(providers.list().map(({ baseUrl }) => baseUrl)).toEqual([old, now])
  expect(providers.hops().map(({ provider }) => provider)).toEqual(['nova'])
})

it('finds a provider whose address has other characters than ASCII by what the worker names it by', () => {
  const providers = new UnattestedProviders()
  providers.add('nova', { base_url: 'https://bücher.example/v1/' }, 'local')
  const baseUrl = 'https://xn--bcher-kva.example/v1'
  expect(providers.find('nova', baseUrl)).toMatchObject({ baseUrl })
})

it.each([
  ['https://provider.example/v1', true],
  ['http://provider.example:8080', true],
  ['https://a.localhost', true],
  ['http://localhost:8000/v1', false],
  ['http://127.0.0.1:8000/v1', false],
  ['http://[::1]:8000/v1', false],
  ['http://10.0.0.5:8000/v1', false],
])('in production the name in %s must lead to a public address: %s', (base_url, publicOnly) => {
  const providers = new UnattestedProviders()
  providers.add('nova', { base_url }, 'production')
  expect(providers.list()).toMatchObject([{ publicOnly }])
})
