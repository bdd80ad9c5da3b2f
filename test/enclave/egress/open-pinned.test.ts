import { expect, it } from 'vitest'
import { openPinned, type PinnedDeps } from '../../../src/enclave/egress/open-pinned.ts'
import { LinkError } from '../../../src/enclave/link-error.ts'
import { ConnectFailure } from '../../../src/enclave/outbound/connect-failure.ts'
import type { ProviderChannel } from '../../../src/enclave/proofs.ts'

it.each([
  ['unreachable', 'provider_unreachable', 'the provider cannot be reached'],
  ['timeout', 'connect_timeout', 'the provider took too long to connect'],
  ['exhausted', 'exhausted', 'the daemon can open no connection'],
] as const)('a connection that fails as %s is refused as %s', async (kind, code, message) => {
  const take = async () => {
    throw new ConnectFailure(kind)
  }
  const parts = { proofs: {}, pools: { pinned: () => ({ connections: { take }, basePath: '' }) } }
  // Nothing else is asked of either.
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion
  const deps = parts as unknown as PinnedDeps
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion
  const channel = { provider: 'nova' } as ProviderChannel
  const refused: unknown = await openPinned(channel, deps).catch((error: unknown) => error)
  expect(refused).toBeInstanceOf(LinkError)
  expect(refused).toMatchObject({ code, message })
})
