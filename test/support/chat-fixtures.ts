import { utf8 } from '../../src/protocol/bytes.ts'
import { routeSchema, type RouteConfig } from '../../src/protocol/config.ts'
import { parseChatRequest } from '../../src/worker/completion/request.ts'
import type { ChatRequest } from '../../src/worker/provider/chat-request.ts'
import type { Route } from '../../src/worker/provider/route.ts'

/** The smallest body that is a chat request, with further members as JSON text. */
export function chatText(members = ''): string {
  const rest = members === '' ? '' : `,${members}`
  return `{"model":"glm-5","messages":[{"role":"user","content":"Hello"}]${rest}}`
}

/** A parsed request from its JSON text or from a value to print. */
export function chatRequest(body: string | object): ChatRequest {
  return parseChatRequest(utf8(typeof body === 'string' ? body : JSON.stringify(body)))
}

/** A concrete chat route with some of its configuration changed. */
export function chatRoute(changes: Partial<RouteConfig> = {}): Route {
  const config = routeSchema.parse({
    model_key: 'glm-5',
    provider: 'nova',
    upstream_model: 'zai-org/GLM-5',
    type: 'chat',
    ...changes,
  })
  return {
    id: 'nova/glm-5',
    modelKey: 'glm-5',
    provider: {
      name: 'nova',
      baseUrl: 'https://nova.example/v1',
      apiKey: undefined,
      adapter: 'none',
      isCarried: false,
    },
    region: undefined,
    config,
  }
}
