import { expect, test } from 'vitest'
import { escapeHtml } from './html_text.ts'

test('what a stranger writes ends neither a tag nor an attribute', () => {
  expect(escapeHtml(`<b title="a" id='b'>&amp;</b>`)).toBe(
    '&lt;b title=&quot;a&quot; id=&#39;b&#39;&gt;&amp;amp;&lt;/b&gt;',
  )
})
