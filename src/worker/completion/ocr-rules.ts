import { z } from 'zod'
import { ApiError, type ErrorCode } from '../http/errors.ts'
import { isFalse, isNull, valueOf } from '../json/scan.ts'
import type { ChatRequest } from '../provider/chat-request.ts'
import { isJsonObject } from '../stream/json-object.ts'
import { isText } from './list-schema.ts'
import { checkImageUrl, refuseRemoteUrl } from './ocr-image.ts'

/** The two prompts that the OCR model was trained on; it fails on any other. */
const PROMPTS: ReadonlySet<string> = new Set([
  'Free OCR.',
  '<|grounding|>Convert the document to markdown.',
])

const imagePart = z.object({
  type: z.literal('image_url'),
  image_url: z.object({ url: z.string() }),
})
const textPart = z.object({ type: z.literal('text'), text: z.string() })

/**
 * Maximum number of parts, far more than an OCR message may have; checked before the parts are, so that a long list costs
 * nothing.
 */
const MAX_PARTS = 32

/** Text content is accepted: the provider then answers without an image. */
const userMessage = z.object({
  role: z.literal('user'),
  content: z.union([
    z.string(),
    z
      .array(z.unknown())
      .max(MAX_PARTS)
      .pipe(z.array(z.discriminatedUnion('type', [imagePart, textPart]))),
  ]),
})

/**
 * Checks the rules of an OCR route (see docs/api.md). Not checked: the size of the page, which the provider limits, and
 * members of the message other than `role` and `content`, which it ignores.
 * @throws ApiError unsupported_reasoning, unsupported_image_url or invalid_request_error, always with `param`
 */
export function checkOcrRequest(request: ChatRequest): void {
  imageUrls(request).forEach(refuseRemoteUrl)
  const [reasoning] = request.reasoningMembers
  if (reasoning !== undefined) {
    throw refusal('unsupported_reasoning', 'OCR models have no reasoning controls.', reasoning)
  }
  checkFixedMembers(request)
  const content = contentOf(request)
  if (typeof content === 'string') return
  const [image, ...moreImages] = content.filter((part) => part.type === 'image_url')
  const [text, ...moreTexts] = content.filter((part) => part.type === 'text')
  if (!image || !text || moreImages.length > 0 || moreTexts.length > 0) {
    throw invalid('An OCR message holds exactly one image and one text part.', 'messages')
  }
  if (!PROMPTS.has(text.text)) {
    const allowed = [...PROMPTS].map((prompt) => `"${prompt}"`).join(' or ')
    throw invalid(`The text part of an OCR message must be exactly ${allowed}.`, 'messages')
  }
  checkImageUrl(image.image_url.url)
}

/**
 * The URLs of all images, even in a request that is otherwise invalid, so that a remote image is reported first. Written
 * without schemas, which would take a microsecond for each of perhaps hundreds of thousands of other parts.
 */
function imageUrls({ bytes, messages }: ChatRequest): readonly string[] {
  const parts = elementsOf(valueOf(bytes, messages)).flatMap((message) =>
    elementsOf(memberOf(message, 'content')),
  )
  return parts.flatMap((part) => {
    const image = memberOf(part, 'image_url')
    const url = isText(image) ? image : memberOf(image, 'url')
    return isText(url) ? url : []
  })
}

function elementsOf(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : []
}

function memberOf(value: unknown, name: string): unknown {
  return isJsonObject(value) ? value[name] : undefined
}

/** Checks that `temperature` and `skip_special_tokens` have only the values that are sent anyway. */
function checkFixedMembers({ bytes, otherMembers, temperature }: ChatRequest): void {
  if (temperature !== undefined && temperature !== 0) {
    throw invalid('OCR models run at "temperature" 0.', 'temperature')
  }
  const skip = otherMembers.get('skip_special_tokens')
  if (skip !== undefined && !isNull(bytes, skip) && !isFalse(bytes, skip)) {
    throw invalid('OCR models need "skip_special_tokens" to be false.', 'skip_special_tokens')
  }
}

function contentOf({ bytes, messages }: ChatRequest): z.infer<typeof userMessage>['content'] {
  if (messages.count !== 1) {
    throw invalid('OCR models take exactly one message and no system prompt.', 'messages')
  }
  const [message] = z.array(z.unknown()).parse(valueOf(bytes, messages))
  const result = userMessage.safeParse(message)
  if (!result.success) {
    throw invalid('OCR models take one user message of an image and a text part.', 'messages')
  }
  return result.data.content
}

function invalid(message: string, param: string): ApiError {
  return refusal('invalid_request_error', message, param)
}

function refusal(code: ErrorCode, message: string, param: string): ApiError {
  return new ApiError(code, message, { param })
}
