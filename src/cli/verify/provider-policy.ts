import type { Es256Jwk } from '../../protocol/jwk.ts'
import { readDocument } from '../../protocol/read-document.ts'
import { providerPolicySchema, type ProviderPolicy } from '../../protocol/provider-policy.ts'
import { InputError } from './input-error.ts'
import { readJson } from './read-input.ts'

/**
 * What an auditor demands of a provider, from a file.
 * @throws InputError when an input cannot be used
 * @throws MalformedEvidence when the input is malformed
 */
export async function readPolicy(path: string): Promise<ProviderPolicy> {
  const policy = readDocument(providerPolicySchema, await readJson(path), 'provider policy')
  if (policy.adapter === 'none') throw new InputError('a policy of adapter "none" demands nothing')
  return policy
}

/** What a release root alone stands for: the policy of adapter `envelope` with everything else as by default. */
export function rootKeyPolicy(rootJwk: Es256Jwk, environments: readonly string[]): ProviderPolicy {
  const policy = { adapter: 'envelope', root_key: rootJwk, environments }
  return readDocument(providerPolicySchema, policy, 'provider policy')
}
