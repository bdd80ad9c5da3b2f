import type { ErrorCode } from './errors.ts'

/** The meaning of each code and what the client can do; docs/errors.md is generated from this. */
export interface ErrorAdvice {
  readonly means: string
  readonly remedy: string
}

const retryLater = 'Try again after `Retry-After`, or with a growing pause.'
const correct = 'Correct what `param` and the message name.'

export const ERROR_GUIDE: Readonly<Record<ErrorCode, ErrorAdvice>> = {
  invalid_request_error: {
    means:
      'The body is not valid, or no route of the requested models has the requested `reasoning`.',
    remedy: correct,
  },
  invalid_parameter: {
    means: 'A query or path parameter, or a header, is malformed, empty or given twice.',
    remedy: correct,
  },
  missing_field: { means: 'A required member, field or path segment is missing.', remedy: correct },
  invalid_timeout_override: {
    means:
      '`X-Service-Timeout-Seconds` is not a positive whole number, or came with `stream: true`.',
    remedy: 'Correct the header, or leave it out with streams.',
  },
  invalid_attestation_constraint: {
    means:
      '`attestation` or `X-Service-Require` is malformed, misspelt, has an unknown member, or is repeated.',
    remedy: correct,
  },
  unsupported_reasoning: {
    means: 'An OCR route was sent `reasoning` or `reasoning_effort`.',
    remedy: 'Leave the member out.',
  },
  unsupported_image_url: {
    means: 'An OCR route was sent the address of an image in place of the image.',
    remedy: 'Send the image as a base64 data URL.',
  },
  context_length_exceeded: {
    means: 'The request is longer than the context window of every model that was tried.',
    remedy: 'Shorten the messages, or list a model with a larger window in `failover`.',
  },
  content_policy_violation: {
    means: 'The provider refused the request by its content policy.',
    remedy: 'Change the request; the same one will be refused again.',
  },
  upstream_rejected: {
    means: 'The provider found the request itself at fault.',
    remedy: 'Leave out members that the model does not support.',
  },
  invalid_content_type: {
    means: 'The body of a transcription is not `multipart/form-data` with a boundary.',
    remedy: 'Let the HTTP library set the Content-Type of the form.',
  },
  invalid_multipart: {
    means: 'The form is malformed, has a part twice, or broke off on its way.',
    remedy: 'Send the form again, as the message says.',
  },
  invalid_model: {
    means: 'The model is unknown, no transcription model, or contradicts `region` or `provider`.',
    remedy: 'Take an id from `GET /v1/models?type=transcription`.',
  },
  invalid_file: {
    means: 'The file is empty, or the provider could not read it.',
    remedy: 'Send valid audio; WAV and MP3 are understood best.',
  },
  unsupported_file_type: {
    means: 'The file is not audio of an accepted type, or no route of the model takes its type.',
    remedy: 'Convert the file, for example to WAV.',
  },
  file_too_large: {
    means: 'The file is larger than the routes of the model take.',
    remedy: 'Split or compress the file, or take another model.',
  },
  invalid_response_format: {
    means: 'The `response_format` of a transcription is not one of those supported.',
    remedy: 'Use `json`, `text` or `verbose_json`.',
  },
  unauthorized: {
    means: 'The API key, or the admin token, is missing or not valid.',
    remedy: 'Send `Authorization: Bearer <key>` with a key that exists.',
  },
  unseal_refused: {
    means: 'A document of the operator was refused; `reason` says why.',
    remedy: 'Have the router attest a nonce again, and sign a new document for it.',
  },
  key_expired: {
    means: 'The API key has expired.',
    remedy: 'Use another key.',
  },
  session_ended: {
    means:
      'The session of the console is over: its time, its end by sign-out, or the end of its token.',
    remedy: 'Sign in again.',
  },
  insufficient_balance: {
    means: 'The balance does not cover the most that the request may cost.',
    remedy: 'Add credit, or set a smaller `max_tokens`.',
  },
  insufficient_quota: {
    means:
      'What is left of the limit of the key does not cover the most that the request may cost.',
    remedy:
      '`GET /v1/key` shows what is left and when the limit resets; or set a smaller `max_tokens`.',
  },
  model_not_allowed: {
    means: 'The key may not use any route of the requested models.',
    remedy: '`GET /v1/key` lists the models that it may use.',
  },
  customer_suspended: {
    means: 'The operator has suspended the account. Usage and receipts can still be read.',
    remedy: 'Ask the operator.',
  },
  insufficient_scope: {
    means: 'The admin token is valid, and its scope does not include this.',
    remedy: 'Use a token of the scope that the message names.',
  },
  cross_site_request: {
    means: 'A request came with the cookie of a session, and not from the page of the console.',
    remedy: 'Programs send an admin token in `Authorization`.',
  },
  not_found: {
    means: 'There is nothing of this id that the key may see, or nothing at this path.',
    remedy: 'Check the id and the key.',
  },
  model_not_found: {
    means: 'No route answers a selector in `model` or `failover`.',
    remedy: 'Take ids from `GET /v1/models`.',
  },
  unsupported_endpoint: {
    means: 'The path belongs to an endpoint that is not supported.',
    remedy: 'The message lists those that are.',
  },
  method_not_allowed: {
    means: 'The path takes another method.',
    remedy: 'Use one of those in `Allow`.',
  },
  expired: {
    means: 'The receipt is past its retention; its SHA-256 is in `receipt_sha256`.',
    remedy: 'Fetch receipts in time and keep them.',
  },
  idempotency_in_progress: {
    means: 'An earlier request with the same `Idempotency-Key` is still being carried out.',
    remedy: 'Send the same request again after `Retry-After`: it gets that answer.',
  },
  answer_not_kept: {
    means:
      'The request was carried out and billed under this `Idempotency-Key`, and its answer is no longer there: it ' +
      'was too large to be kept, made room for others, or cannot be read.',
    remedy: 'The message names its receipt. To have it carried out again, use a new key.',
  },
  idempotency_key_reused: {
    means:
      'The `Idempotency-Key` was used before with another body, path, service header or API key.',
    remedy: 'Use a new key for each request, and repeat a request unchanged.',
  },
  attestation_not_accepted: {
    means:
      'No provider of the requested models meets what `attestation`, `X-Service-Require` or the key requires. Nothing of the request has left the router.',
    remedy:
      'Require less, allow more models in `failover`, or try again once a provider is verified again.',
  },
  request_too_large: {
    means: 'The body is larger than the limit, or has more values than are parsed in one go.',
    remedy: 'Send less.',
  },
  answer_too_long: {
    means:
      'The answer is longer than the router holds: one that is not streamed has more than 16 MiB or too many values, or the text of a streamed one, ' +
      'which must be held until its end in this format, more than 8 Mi characters. What was produced is billed.',
    remedy:
      'Limit the answer (`max_tokens`, `max_output_tokens`, `n`, `top_logprobs`), or stream it from `/v1/chat/completions`, where nothing is held.',
  },
  request_timeout: {
    means: 'The body came too slowly: it has ten seconds, and one more for every 32 KB.',
    remedy: 'Try again over a faster connection, or send less.',
  },
  upload_too_large: {
    means: 'The file is larger than 25 MiB, the limit of the router.',
    remedy: 'Split or compress the file.',
  },
  invalid_encryption: {
    means:
      'The body came encrypted (`Ehbp-Encapsulated-Key`) and does not decrypt, was sent before, or the endpoint takes none.',
    remedy: 'Encrypt each request separately; nothing of this one was processed.',
  },
  key_config_mismatch: {
    means:
      'The body is encrypted to a key that is no longer in use. The answer is a problem document of EHBP and is not encrypted.',
    remedy: 'Verify the router again, take its new key, and send the request once more.',
  },
  rate_limit_exceeded: {
    means: 'The key has used up a limit of its plan, or too many attestations were asked for.',
    remedy: retryLater,
  },
  upstream_rate_limit: {
    means: 'Every route for the request is rate limited by its provider.',
    remedy: `${retryLater} More routes make it rarer: a shorter selector, or \`failover\`.`,
  },
  internal: {
    means: 'The router failed on this request.',
    remedy: 'Try again; tell the operator the `x-request-id` if it persists.',
  },
  upstream_error: {
    means: 'No provider could transcribe the file.',
    remedy: 'Try again with a growing pause.',
  },
  bad_gateway: {
    means: 'The provider failed for an unknown reason.',
    remedy: 'Try again, or list another model in `failover`.',
  },
  service_unavailable: {
    means:
      'The enclave or the storage cannot be reached, or the router is full or is being stopped.',
    remedy: retryLater,
  },
  sealed: {
    means: 'The router was started without its secrets, and waits for its operator.',
    remedy: retryLater,
  },
  routes_unavailable: {
    means: 'No route for the request is available, the `failover` list included.',
    remedy: retryLater,
  },
  route_not_priced: {
    means: 'No route of the model has a price.',
    remedy: 'Do not try again; tell the operator, or take another model.',
  },
  attestation_unavailable: {
    means: 'No evidence could be captured. The body is `{"error": "attestation_unavailable"}`.',
    remedy: retryLater,
  },
  upstream_timeout: {
    means:
      'The time of the request was over before a provider had answered. Where the caller had set less than 180 seconds, the prompt of the last attempt is billed.',
    remedy: 'Stream long answers, or raise `X-Service-Timeout-Seconds` (600 at most).',
  },
}
