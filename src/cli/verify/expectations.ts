import { InvalidArgumentError, type Command } from 'commander'
import { parseConstraints, type Constraints } from '../../protocol/constraints.ts'
import { sha256Hex } from '../../protocol/digest.ts'
import type { ExpectedExchange } from '../../verify/receipt-claims.ts'
import { responseDigest } from '../../verify/response-digest.ts'
import { readInput } from './read-input.ts'

/** What the caller knows about the exchange of a receipt: paths of files, and routes. */
export interface ExpectationOptions {
  readonly endpoint?: string
  readonly request?: string
  readonly response?: string
  readonly providerRequest?: string
  readonly providerResponse?: string
  readonly requestedRoute?: string
  readonly routedModel?: string
  readonly require?: Constraints
}

export function addExpectations(command: Command): void {
  command
    .option('--endpoint <path>', 'the endpoint it must say was called, such as /v1/messages')
    .option('--request <file>', 'the body that the client sent')
    .option('--response <file>', 'the body that the client got, a stream included')
    .option('--provider-request <file>', 'the body that went to the provider')
    .option('--provider-response <file>', 'the body that came from the provider')
    .option('--requested-route <route>', 'the route it must say was asked for')
    .option('--routed-model <route>', 'the route it must say was used')
    .option(
      '--require <constraints>',
      'what the provider must have met, as in X-Service-Require: "min=hardware; providers=nova"',
      constraintsFrom,
    )
}

/**
 * Computes the expected digests from the files that the caller names.
 * @throws InputError when a file cannot be read
 * @throws MalformedEvidence when an answer continues after its end mark, or when its last event has content that
 *   earlier events do not have
 */
export async function expectations(options: ExpectationOptions): Promise<ExpectedExchange> {
  const { response } = options
  return {
    endpoint: options.endpoint,
    requestedRoute: options.requestedRoute,
    routedModel: options.routedModel,
    constraints: options.require,
    clientRequestSha256: await digestOf(options.request),
    clientResponseSha256:
      response === undefined ? undefined : await responseDigest(await readInput(response)),
    providerRequestSha256: await digestOf(options.providerRequest),
    providerResponseSha256: await digestOf(options.providerResponse),
  }
}

function constraintsFrom(text: string): Constraints {
  const constraints = parseConstraints(text)
  if (constraints !== undefined) return constraints
  throw new InvalidArgumentError('give min, providers or evidence_sha256 as in X-Service-Require')
}

async function digestOf(path: string | undefined): Promise<string | undefined> {
  return path === undefined ? undefined : sha256Hex(await readInput(path))
}
