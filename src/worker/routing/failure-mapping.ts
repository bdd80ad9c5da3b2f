import { ApiError } from '../http/errors.ts'
import type { Failure } from '../provider/failure.ts'
import { notAccepted } from './accepted-attempts.ts'

/** Maps the failures of attempts to errors for the callers of one endpoint. */
export interface FailureMapping {
  /** Failures that end the request, even when other routes are left. */
  readonly final: Partial<Record<Failure['kind'], () => ApiError>>
  /** The answer when no route served; `planned` is the number of different routes. */
  readonly allFailed: (failures: readonly Failure[], planned: number) => ApiError
}

const contentPolicy = () =>
  new ApiError(
    'content_policy_violation',
    'The provider refused this request by its content policy.',
  )

export const CHAT_FAILURE_MAPPING = textFailureMapping('messages')

export const EMBEDDING_FAILURE_MAPPING = textFailureMapping('input')

/**
 * The mapping for models that read text: a refusal of the request is final; after any other failure the next route is tried.
 * @param param the request member that holds the text
 */
function textFailureMapping(param: string): FailureMapping {
  return {
    final: {
      rejected: () =>
        new ApiError('upstream_rejected', 'The provider refused this request as invalid.'),
      content_policy: contentPolicy,
    },
    allFailed: (all, planned) => {
      const failures = ofAccepted(all)
      if (every(failures, 'context_length')) {
        const message = 'This request is longer than the context window of the model.'
        return new ApiError('context_length_exceeded', message, { param })
      }
      if (every(failures, 'rate_limited')) return rateLimited(failures)
      if (planned === 1 && failures.at(-1)?.kind === 'unclassified') {
        return new ApiError('bad_gateway', 'The provider failed to answer this request.')
      }
      const message = 'No route for this request is available.'
      return new ApiError('routes_unavailable', message, retryAfter(failures))
    },
  }
}

const aboutFile = { param: 'file' }

/** The mapping for transcription: a refusal of the file is final; any other failure is the provider's. */
export const TRANSCRIPTION_FAILURE_MAPPING: FailureMapping = {
  final: {
    content_policy: contentPolicy,
    file_rejected: () => new ApiError('invalid_file', 'The provider refused this file.', aboutFile),
    file_too_large: () =>
      new ApiError('file_too_large', 'The file is too large for the provider.', aboutFile),
    file_type_rejected: () =>
      new ApiError(
        'unsupported_file_type',
        'The provider does not accept this audio format.',
        aboutFile,
      ),
  },
  allFailed: (all) => {
    const failures = ofAccepted(all)
    return every(failures, 'rate_limited')
      ? rateLimited(failures)
      : new ApiError('upstream_error', 'No provider could transcribe this file.')
  },
}

/**
 * Leaves out the failures of providers that did not meet the caller's constraints, as if these had not been planned.
 * @throws ApiError `attestation_not_accepted` when none met them
 */
function ofAccepted(failures: readonly Failure[]): readonly Failure[] {
  const accepted = failures.filter(({ kind }) => kind !== 'attestation_not_accepted')
  if (accepted.length === 0 && failures.length > 0) throw notAccepted()
  return accepted
}

function every(failures: readonly Failure[], kind: Failure['kind']): boolean {
  return failures.length > 0 && failures.every((failure) => failure.kind === kind)
}

function rateLimited(failures: readonly Failure[]): ApiError {
  const message = 'Every route for this request is rate limited.'
  return new ApiError('upstream_rate_limit', message, retryAfter(failures))
}

/** The shortest `Retry-After` of the providers. */
function retryAfter(failures: readonly Failure[]): { readonly retryAfter?: number } {
  const waits = failures.flatMap(({ retryAfterMs }) => retryAfterMs ?? [])
  return waits.length > 0 ? { retryAfter: Math.min(...waits) / 1000 } : {}
}
