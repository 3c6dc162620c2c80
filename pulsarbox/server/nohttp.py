class HttpServer:
    def __init__(self, shell):
        pass

    async def start(self, host, port):
        return port

    async def stop(self):
        pass
