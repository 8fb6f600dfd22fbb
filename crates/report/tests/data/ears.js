window.heard = { errors: [], refused: [] };
addEventListener('error', event => heard.errors.push(String(event.message)));
addEventListener('unhandledrejection', event => heard.errors.push(String(event.reason)));
addEventListener('securitypolicyviolation', event => heard.refused.push(event.violatedDirective + ' ' + event.blockedURI));
console.error = console.warn = (...words) => heard.errors.push(words.join(' '));
