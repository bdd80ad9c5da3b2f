import { readDocument } from '../../protocol/read-document.ts'
import { providerPolicySchema, type ProviderPolicy } from '../../protocol/provider-policy.ts'
import { InputError } from './input-error.ts'
import { readJson } from './read-input.ts'

/**
 * An auditor's requirements on a provider, from a file.
 * @throws InputError when the file cannot be read or its adapter is `none`, which requires nothing
 * @throws MalformedEvidence when it is not a valid policy
 */
export async function readPolicy(path: string): Promise<ProviderPolicy> {
  const policy = readDocument(providerPolicySchema, await readJson(path), 'provider policy')
  if (policy.adapter === 'none') throw new InputError('a policy of adapter "none" demands nothing')
  return policy
}
